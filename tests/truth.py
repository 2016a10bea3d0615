"""What must hold whatever happens: read from the database, and compared with what it was before."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.utils import timezone

from runs.models import Message, Run, RunInput
from runs.states import ACTIVE, TERMINAL

Log = tuple[tuple[int, str, str], ...]
"""Of each event: number, type, text."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One run as it is stored."""

    conversation: UUID
    turn: int
    status: str
    attempt: int
    tries: int
    next_seq: int
    inputs: tuple[str, ...]
    input_count: int
    claimed_by: str
    output: str
    finished: bool
    expired: bool
    """Its lease is over."""
    log: Log

    @property
    def text(self) -> str:
        """What the log adds up to since the last restart."""
        said = ""
        for _, type, text in self.log:
            said = "" if type == "run_restarted" else said + text
        return said


Facts = dict[UUID, Fact]
ENDS = {"done": "run_completed", "failed": "run_failed", "cancelled": "run_cancelled"}


def facts() -> Facts:
    """All runs, in three queries."""
    now = timezone.now()
    inputs: dict[UUID, list[str]] = {}
    for run_id, text in RunInput.objects.order_by("position").values_list("run_id", "text"):
        inputs.setdefault(run_id, []).append(text)
    logs: dict[UUID, list[tuple[int, str, str]]] = {}
    for run_id, seq, type, data in Message.objects.order_by("seq").values_list(
        "run_id", "seq", "type", "data"
    ):
        text = data.get("text", "") if type == "delta" else ""
        logs.setdefault(run_id, []).append((seq, type, text))
    return {
        run.pk: Fact(
            run.conversation_id,
            run.turn,
            run.status,
            run.attempt,
            run.tries,
            run.next_seq,
            tuple(inputs.get(run.pk, ())),
            run.input_count,
            run.claimed_by,
            run.output,
            run.finished_at is not None,
            run.lease_expires_at is not None and run.lease_expires_at <= now,
            tuple(logs.get(run.pk, ())),
        )
        for run in Run.objects.order_by("turn")
    }


def assert_holds(now: Facts) -> None:
    """Every run by itself, and no two of one conversation active."""
    busy = [fact.conversation for fact in now.values() if fact.status in ACTIVE]
    assert len(busy) == len(set(busy)), "two runs of one conversation are active"
    for run_id, fact in now.items():
        over = fact.status in TERMINAL
        assert [seq for seq, _, _ in fact.log] == list(range(fact.next_seq)), f"{run_id}: {fact}"
        ends = [(seq, type) for seq, type, _ in fact.log if type in ENDS.values()]
        expected = [(fact.next_seq - 1, ENDS[fact.status])] if over else []
        assert ends == expected, f"status and log disagree: {fact}"
        assert fact.finished == over, f"status and time of end disagree: {fact}"
        assert len(fact.inputs) == fact.input_count, f"inputs are miscounted: {fact}"
        if over:
            assert fact.output == fact.text, f"output and log disagree: {fact}"


def assert_follows(before: Facts, now: Facts) -> None:
    """Logs only grow, what is over stays as it is, attempts only rise."""
    for run_id, was in before.items():
        fact = now[run_id]
        assert fact.log[: len(was.log)] == was.log, f"a log was rewritten: {was} → {fact}"
        assert fact.attempt >= was.attempt, f"the attempt fell: {was} → {fact}"
        assert fact.inputs[: len(was.inputs)] == was.inputs, f"inputs changed: {was} → {fact}"
        if was.status in TERMINAL:
            assert fact == was, f"a finished run was changed: {was} → {fact}"
