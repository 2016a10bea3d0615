"""Group commit: what is joined, what is refused, and what a failing database costs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from uuid import UUID, uuid4

import pytest
from django.db import DataError, OperationalError

from runs import events
from runs.emitter import MAX_PENDING, Emitter
from runs.errors import AlreadyFinished, InputGrew, KodaError, Superseded, Unwritable
from runs.events import StoredEvent
from runs.runlog import RunLog
from runs.states import Status
from runs.writes import Append, Ending
from tests.waiting import until

END = events.run_completed(finish_reason="stop", usage=None)


class Store:
    """Stands where the database is: keeps what is written, refuses or fails as told."""

    def __init__(self) -> None:
        self.batches: list[list[Append]] = []
        self.rows: dict[UUID, list[StoredEvent]] = {}
        self.shown: list[StoredEvent] = []
        self.failures: list[Exception] = []
        self.refusals: dict[UUID, KodaError] = {}
        self.poison = ""
        self.gate = asyncio.Event()
        self.gate.set()
        self.writing = 0

    async def write(self, batch: Sequence[Append]) -> list[KodaError | None]:
        self.writing += 1
        await self.gate.wait()
        if self.failures:
            raise self.failures.pop(0)
        if self.poison and any(e.data.get("text") == self.poison for b in batch for e in b.events):
            raise DataError("poison")
        self.batches.append(list(batch))
        return [self._write_one(entry) for entry in batch]

    def _write_one(self, entry: Append) -> KodaError | None:
        if refusal := self.refusals.get(entry.run_id):
            return refusal
        rows = self.rows.setdefault(entry.run_id, [])
        assert entry.seq == len(rows), "numbers must be contiguous"
        rows += [StoredEvent(entry.seq + i, e.type, e.data) for i, e in enumerate(entry.events)]
        return None

    def show(self, run_id: UUID, stored: Sequence[StoredEvent]) -> None:
        assert self.rows[run_id][stored[0].seq] == stored[0], "shown before it was stored"
        self.shown += stored

    def text(self, log: RunLog) -> str:
        return "".join(e.data.get("text", "") for e in self.rows.get(log.run_id, []))


@asynccontextmanager
async def running(store: Store, *, fragments: int = 40) -> AsyncIterator[Emitter]:
    emitter = Emitter(
        write=store.write, show=store.show, flush_fragments=fragments, flush_interval=0.001
    )
    task = asyncio.create_task(emitter.run())
    try:
        yield emitter
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def new_log(refused: list[KodaError] | None = None) -> RunLog:
    heard = [] if refused is None else refused
    return RunLog(uuid4(), 1, "w1", seq=0, streaming=False, on_refused=heard.append)


async def finish(emitter: Emitter, log: RunLog, *, consumed: int | None = 1) -> None:
    await emitter.finish(
        log, END, to=Status.DONE, ending=Ending("", finish_reason="stop"), consumed=consumed
    )


async def test_a_fragment_that_finds_the_worker_idle_is_an_event_of_its_own():
    store, log = Store(), new_log()
    async with running(store) as emitter:
        for word in ("a", "b", "c"):
            await emitter.emit(log, word)
            await emitter.settle(log)
    assert [e.data["text"] for e in store.shown] == ["a", "b", "c"]
    assert [entry.to for [entry] in store.batches] == [Status.STREAMING, None, None]


async def test_what_arrives_during_a_write_joins_the_next_one_text_as_one_event():
    store, log = Store(), new_log()
    async with running(store) as emitter:
        store.gate.clear()
        await emitter.emit(log, "first")
        await until(lambda: store.writing, "the first write")
        for word in ("a", "b", "c"):
            await emitter.emit(log, word)
        await emitter.emit(log, events.tool_started(tool_call_id="t", name="n", input={}))
        await emitter.emit(log, "d")
        store.gate.set()
        await emitter.settle(log)
    assert [(e.seq, e.type, e.data.get("text")) for e in store.shown] == [
        (0, "delta", "first"),
        (1, "delta", "abc"),
        (2, "tool_started", None),
        (3, "delta", "d"),
    ]


async def test_runs_that_write_at_the_same_time_share_a_commit():
    store, logs = Store(), [new_log() for _ in range(5)]
    async with running(store) as emitter:
        for log in logs:
            await emitter.emit(log, "x")
        for log in logs:
            await emitter.settle(log)
    assert [len(batch) for batch in store.batches] == [5]


async def test_no_more_than_the_limit_of_one_run_goes_into_one_commit():
    store, log = Store(), new_log()
    async with running(store, fragments=3) as emitter:
        for n in range(7):
            await emitter.emit(log, events.tool_started(tool_call_id=str(n), name="n", input={}))
        await finish(emitter, log)
    assert [len(entry.events) for [entry] in store.batches] == [3, 3, 2]


async def test_joined_text_stays_below_64_kb():
    store, log = Store(), new_log()
    async with running(store) as emitter:
        for _ in range(3):
            await emitter.emit(log, "x" * 30_000)
        await emitter.settle(log)
    assert [len(e.data["text"]) for e in store.shown] == [60_000, 30_000]


async def test_the_end_goes_out_with_everything_before_it_and_the_whole_text():
    store, log = Store(), new_log()
    async with running(store) as emitter:
        await emitter.emit(log, "so ")
        await emitter.settle(log)
        await emitter.emit(log, "far")
        await finish(emitter, log)
    [last] = store.batches[-1]
    assert last.ending is not None
    assert last.ending.output == "so far"
    assert [e.type for e in last.events] == ["delta", "run_completed"]
    assert last.consumed == 1


async def test_an_answer_begun_anew_and_ended_in_one_write_has_nothing_of_the_first():
    store, log = Store(), new_log()
    async with running(store) as emitter:
        await emitter.emit(log, "void ")
        await emitter.settle(log)
        await emitter.emit(log, "void as well ")
        anew = events.run_restarted(reason=events.RestartReason.MERGED, attempt=1, inputs=["a"])
        await emitter.emit(log, anew)
        await emitter.emit(log, "good")
        await finish(emitter, log)
    [[_], [last]] = store.batches
    assert last.ending.output == "good"


async def test_an_unread_input_refuses_the_end_but_not_the_log():
    store, log = Store(), new_log()
    async with running(store) as emitter:
        store.refusals[log.run_id] = InputGrew("2 inputs")
        with pytest.raises(InputGrew):
            await finish(emitter, log)
        del store.refusals[log.run_id]
        await emitter.emit(log, "again")
        await finish(emitter, log, consumed=2)
    assert store.text(log) == "again"


@pytest.mark.parametrize("refusal", [Superseded("x"), AlreadyFinished("x")])
async def test_a_refused_log_takes_nothing_more_and_names_its_writer(
    refusal: KodaError, caplog: pytest.LogCaptureFixture
):
    store, heard = Store(), []
    log, other = new_log(heard), new_log()
    async with running(store) as emitter:
        store.refusals[log.run_id] = refusal
        await emitter.emit(log, "late")
        await emitter.emit(other, "fine")
        await emitter.settle(other)
        with pytest.raises(type(refusal)):
            await emitter.emit(log, "later")
        with pytest.raises(type(refusal)):
            await finish(emitter, log)
    assert heard == [refusal]
    assert store.text(other) == "fine"
    assert "attempt=1 worker=w1 first=0 last=0" in caplog.text


async def test_a_database_that_comes_back_loses_nothing_and_reorders_nothing():
    store, log = Store(), new_log()
    async with running(store) as emitter:
        store.failures = [OperationalError("gone"), OperationalError("still gone")]
        for word in ("a", "b", "c"):
            await emitter.emit(log, word)
        await until(lambda: not store.failures, "both failures")
        await emitter.emit(log, "d")
        await finish(emitter, log)
    assert store.text(log) == "abcd"


async def test_one_bad_event_takes_neither_its_neighbours_nor_other_runs_with_it():
    store, heard = Store(), []
    log, other = new_log(heard), new_log()
    async with running(store) as emitter:
        store.poison, store.gate = "bad", asyncio.Event()
        await emitter.emit(log, "good")
        await emitter.emit(log, events.tool_started(tool_call_id="t", name="n", input={}))
        await emitter.emit(log, "bad")
        await emitter.emit(other, "fine")
        store.gate.set()
        await emitter.settle(other)
        with pytest.raises(Unwritable):
            await emitter.settle(log)
    assert [e.type for e in store.rows[log.run_id]] == ["delta", "tool_started"]
    assert store.text(other) == "fine"
    assert isinstance(heard[0], Unwritable)


async def test_discarding_drops_what_was_not_being_written():
    store, log = Store(), new_log()
    async with running(store) as emitter:
        store.gate.clear()
        await emitter.emit(log, "seen")
        await until(lambda: store.writing, "the first write")
        await emitter.emit(log, "unseen")
        discarding = asyncio.create_task(emitter.discard(log))
        store.gate.set()
        await discarding
        await emitter.emit(log, "next")
        await finish(emitter, log)
    assert store.text(log) == "seennext"


async def test_agents_wait_while_too_much_is_pending():
    store, log = Store(), new_log()
    async with running(store) as emitter:
        store.gate.clear()

        async def flood() -> None:
            for _ in range(MAX_PENDING + 100):
                await emitter.emit(log, events.reasoning("x"))

        flooding = asyncio.create_task(flood())
        await until(lambda: len(log.waiting) >= MAX_PENDING - 100, "the queue to fill")
        assert not flooding.done()
        assert len(log.waiting) <= MAX_PENDING
        store.gate.set()
        await flooding
        await finish(emitter, log)
    assert len(store.rows[log.run_id]) == MAX_PENDING + 101


async def test_a_big_event_counts_for_many():
    store, log = Store(), new_log()
    big = events.tool_completed(tool_call_id="c", output="x" * 500_000)
    async with running(store) as emitter:
        store.gate.clear()

        async def flood() -> None:
            for _ in range(40):
                await emitter.emit(log, big)

        flooding = asyncio.create_task(flood())
        await until(lambda: len(log.waiting) >= 15, "the queue to fill")
        assert len(log.waiting) <= 17
        assert not flooding.done()
        store.gate.set()
        await flooding
        await finish(emitter, log)
    assert len(store.rows[log.run_id]) == 41
