"""Any sequence of steps, stale attempts included, leaves every promise intact."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from runs import services
from runs.errors import ConversationBusy, NotRegenerable
from runs.models import Conversation, Run
from runs.services import OnBusy
from runs.states import OPEN, Status
from tests import hands, truth
from tests.fakes import LEASE, RecordingPort
from tests.hands import Hand
from tests.racing import expire
from tests.truth import Facts

pytestmark = pytest.mark.django_db

WORKERS = st.sampled_from(["a", "b"])


class Runs(RuleBasedStateMachine):
    """Two conversations, two workers, and everything that may be done to their runs.

    A hand is what a worker believed at some moment: each stays in the bundle, and any of them may
    write at any time, as workers do that were frozen or cut off.
    """

    known = Bundle("hands")

    def __init__(self) -> None:
        super().__init__()
        self._mark = connection.savepoint()
        self._before: Facts = {}
        self._accepted: list[tuple[str, object]] = []

    def teardown(self) -> None:
        """Whatever happened, a last worker brings it to an end."""
        for run in Run.objects.active():
            expire(run)
        hands.finish_everything()
        self.all_holds()
        assert not [fact for fact in self._before.values() if fact.status in OPEN]
        for text, run_id in self._accepted:
            fact = self._before[run_id]
            assert fact.inputs.count(text) == 1
            if fact.status == "done":
                assert text in fact.output, f"an input was not read: {fact}"
        connection.savepoint_rollback(self._mark)

    @initialize()
    def begin(self) -> None:
        self._conversations = [
            Conversation.objects.create(visitor_key=f"visitor {number}") for number in range(2)
        ]

    # People ---------------------------------------------------------------------------------

    @rule(which=st.integers(0, 1), on_busy=st.sampled_from(OnBusy))
    def submit(self, which: int, on_busy: OnBusy) -> None:
        text = f"m{len(self._accepted)}."
        try:
            sent = services.submit(self._conversations[which], text, on_busy=on_busy)
        except ConversationBusy:
            return
        self._accepted.append((text, sent.run.pk))

    @rule(which=st.integers(0, 1), back=st.integers(0, 2))
    def cancel(self, which: int, back: int) -> None:
        runs = list(self._conversations[which].runs.order_by("-turn")[: back + 1])
        if runs:
            services.cancel(runs[-1].pk)

    @rule(which=st.integers(0, 1))
    def regenerate(self, which: int) -> None:
        last = self._conversations[which].runs.order_by("-turn").first()
        if last is not None:
            try:
                services.regenerate(last.pk)
            except NotRegenerable:
                assert not last.is_terminal

    # Workers, healthy or not ----------------------------------------------------------------

    @rule(target=known, worker=WORKERS)
    def take(self, worker: str) -> Hand | None:
        return hands.take(worker)

    @rule(target=known, hand=known)
    def load(self, hand: Hand | None) -> Hand | None:
        return hand and hands.load(hand)

    @rule(target=known, hand=known)
    def say(self, hand: Hand | None) -> Hand | None:
        return self._write(hand, hands.say)

    @rule(target=known, hand=known, to=st.sampled_from([Status.DONE, Status.DONE, Status.FAILED]))
    def end(self, hand: Hand | None, to: Status) -> Hand | None:
        if hand and to == Status.DONE and (hand.voids or not hand.said):
            return hand
        return self._write(hand, lambda held: hands.end(held, to=to))

    def _write(self, hand: Hand | None, write: Callable[[Hand], Hand]) -> Hand | None:
        """A worker that was refused or is done has stopped; one without inputs is silent."""
        if hand is None or hand.over or hand.inputs is None:
            return hand
        return write(hand)

    @rule(hand=known, error=st.sampled_from([None, {"code": "overloaded", "message": "Later."}]))
    def release(self, hand: Hand | None, error: dict | None) -> None:
        if hand:
            Run.objects.release(hand.run_id, attempt=hand.attempt, error=error)

    @rule(hand=known)
    def renew(self, hand: Hand | None) -> None:
        if hand:
            Run.objects.renew([(hand.run_id, hand.attempt)], lease=LEASE)

    # Time -----------------------------------------------------------------------------------

    @rule(which=st.integers(0, 1))
    def lease_ends(self, which: int) -> None:
        for run in self._conversations[which].runs.all():
            if run.lease_expires_at:
                expire(run)

    @rule(which=st.integers(0, 1))
    def window_ends(self, which: int) -> None:
        for run in self._conversations[which].runs.all():
            earlier = run.created_at - timedelta(minutes=1)
            Run.objects.filter(pk=run.pk).update(created_at=earlier)

    @rule(which=st.integers(0, 1))
    def give_up(self, which: int) -> None:
        for run in self._conversations[which].runs.all():
            Run.objects.fail_expired(run.pk, code="worker_lost", message="Lost.")

    @invariant()
    def all_holds(self) -> None:
        now = truth.facts()
        truth.assert_holds(now)
        truth.assert_follows(self._before, now)
        self._before = now


@pytest.fixture(autouse=True)
def _unheard(port: RecordingPort, quiet: None) -> None:
    """What is done here is told to nobody, nor written into the log a thousand times."""


def test_no_sequence_of_steps_breaks_a_promise():
    run_state_machine_as_test(
        Runs,
        settings=settings(
            max_examples=40,
            stateful_step_count=25,
            deadline=None,
            derandomize=True,
            phases=[
                Phase.generate
            ],  # twenty-five steps can be read; making them fewer takes minutes
            suppress_health_check=list(HealthCheck),
        ),
    )
