"""Every order in which two workers, a correction, a cancel and the end of a lease can meet.

Each step is one transaction of the real methods on the real database. After each the promises are
checked; where nobody has anything left to do, a last worker must bring all to an end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest
from django.db import connection

from runs import services
from runs.models import Conversation, Run
from runs.states import OPEN
from tests import hands, truth
from tests.hands import Hand
from tests.racing import expire
from tests.truth import Facts

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("port", "quiet")]


@dataclass(frozen=True, slots=True)
class Worker:
    """Takes a run, reads its inputs, answers, ends; begins again as often as `takes` says."""

    name: str
    takes: int
    hand: Hand | None = None


@dataclass(frozen=True, slots=True)
class World:
    workers: tuple[Worker, ...]
    to_come: frozenset[str]
    """What may still happen, each once: correct, cancel, expire."""


Step = Callable[[], World]


class Explorer:
    def __init__(self, conversation: Conversation, *, fresh: Worker) -> None:
        self._conversation = conversation
        self._fresh = fresh
        self._seen: set[object] = set()
        self.steps = 0
        self.ends: set[tuple[str, ...]] = set()
        """The ways in which it all may end: the statuses of the runs, in turn."""

    def explore(self, world: World, before: Facts) -> None:
        """Everything that can happen from here; the database is left as it was."""
        moves = list(self._moves(world))
        if not moves:
            self._come_to_an_end(before)
        for move in moves:
            mark = connection.savepoint()
            after, now = move(), truth.facts()
            self.steps += 1
            truth.assert_holds(now)
            truth.assert_follows(before, now)
            assert_answers(now)
            key = (after, tuple(now.items()))
            if key not in self._seen:
                self._seen.add(key)
                self.explore(after, now)
            connection.savepoint_rollback(mark)

    def _come_to_an_end(self, now: Facts) -> None:
        mark = connection.savepoint()
        if any(fact.status in OPEN for fact in now.values()):
            for run in Run.objects.active():
                expire(run)
            hands.finish_everything()
            before, now = now, truth.facts()
            truth.assert_holds(now)
            truth.assert_follows(before, now)
            assert_answers(now)
        assert not [fact for fact in now.values() if fact.status in OPEN], "a run is left open"
        self.ends.add(tuple(fact.status for fact in now.values()))
        connection.savepoint_rollback(mark)

    def _moves(self, world: World) -> Iterator[Step]:
        for place, worker in enumerate(world.workers):
            if place and world.workers[0] == self._fresh:
                continue  # as if they had each other's names
            if step := self._of_worker(worker):
                yield lambda place=place, step=step: self._put(world, place, step())  # type: ignore[misc]
        for what in sorted(world.to_come):
            yield lambda what=what: self._happen(world, what)  # type: ignore[misc]

    @staticmethod
    def _put(world: World, place: int, worker: Worker) -> World:
        workers = list(world.workers)
        workers[place] = worker
        return replace(world, workers=tuple(workers))

    @staticmethod
    def _of_worker(worker: Worker) -> Callable[[], Worker] | None:
        hand = worker.hand
        if hand is None:
            if not worker.takes:
                return None
            return lambda: replace(worker, takes=worker.takes - 1, hand=_begin(worker.name))
        if hand.inputs is None:
            return lambda: _go_on(worker, hands.say(hands.load(hand)))
        if not hand.said:
            return lambda: _go_on(worker, hands.say(hand))
        return lambda: _go_on(worker, hands.end(hand))

    def _happen(self, world: World, what: str) -> World:
        match what:
            case "correct":
                services.submit(self._conversation, "second")
            case "cancel":
                services.cancel(self._conversation.runs.order_by("turn")[0].pk)
            case "expire":
                for run in Run.objects.active():
                    expire(run)
        return replace(world, to_come=world.to_come - {what})


def _begin(worker: str) -> Hand | None:
    hand = hands.take(worker)
    return hand and hands.load(hand)


def _go_on(worker: Worker, hand: Hand) -> Worker:
    return replace(worker, hand=None if hand.over else hand)


def assert_answers(now: Facts) -> None:
    """No message is lost: a run that is done has answered all of its inputs."""
    for fact in now.values():
        if fact.status == "done":
            assert fact.output == hands.answer(fact.inputs), f"an input was not read: {fact}"


def explored(conversation: Conversation, *what: str, workers: int = 2) -> Explorer:
    """So many workers, each of which takes a run once, and these events."""
    services.submit(conversation, "first")
    team = tuple(Worker(name, takes=1) for name in "ab"[:workers])
    explorer = Explorer(conversation, fresh=team[0])
    explorer.explore(World(team, frozenset(what)), truth.facts())
    return explorer


def test_no_order_of_steps_breaks_a_promise(conversation: Conversation):
    found = explored(conversation, "correct", "cancel", "expire")
    assert found.ends == {("done",), ("cancelled",), ("done", "done"), ("cancelled", "done")}
    assert found.steps > 1000


def test_an_end_that_does_not_ask_for_new_inputs_is_found(
    conversation: Conversation, monkeypatch: pytest.MonkeyPatch
):
    append = Run.objects.append

    def deaf(batch, **more):
        return append([replace(one, consumed=None) for one in batch], **more)

    monkeypatch.setattr(Run.objects, "append", deaf)
    with pytest.raises(AssertionError, match="an input was not read"):
        explored(conversation, "correct", workers=1)


def test_a_worker_that_writes_over_its_successor_is_found(
    conversation: Conversation, monkeypatch: pytest.MonkeyPatch
):
    append = Run.objects.append

    def unfenced(batch, **more):
        rows = {run.pk: run for run in Run.objects.filter(pk__in=[one.run_id for one in batch])}
        own = [
            replace(one, attempt=rows[one.run_id].attempt, seq=rows[one.run_id].next_seq)
            for one in batch
        ]
        return append(own, **more)

    monkeypatch.setattr(Run.objects, "append", unfenced)
    with pytest.raises(AssertionError, match=r"disagree|not read"):
        explored(conversation, "expire")
