"""A long replay is one snapshot and the rest, folded once for all who ask."""

from __future__ import annotations

import asyncio
import json

import pytest

from runs import events, projection
from runs.events import EventType
from runs.reducer import fold, initial_agent_state, reduce_agent_event
from streaming import snapshots
from streaming.gateway import PIECE
from streaming.protocols import agent, koda
from tests.reading import END, Log, Reader, publish, serving, watching
from tests.waiting import until

CAP = 10
STARTED = events.run_started(attempt=1, agent="demo")


def long_log(words: int) -> Log:
    log = Log()
    log.write(STARTED)
    log.words(words - 1)
    return log


def expected(log: Log, through: int) -> bytes:
    """The native stream of a reader who gets a snapshot, then the rest."""
    made = projection.Projection(str(log.run_id))
    made.extend(log.events[: through + 1])
    rest = [made.snapshot(), *log.events[through + 1 :]]
    return b"".join(koda.encode(log.run_id, event) for event in rest)


def got(reader: Reader) -> bytes:
    return b"".join(reader.raw[1:])


@pytest.mark.parametrize("start", [0, 5, 30])
async def test_more_than_the_cap_is_one_snapshot_and_then_what_comes(start: int):
    log = long_log(41)
    async with serving(log, cap=CAP) as gateway:
        reader = Reader(gateway, log, start)
        await watching(reader, 40)
        await publish(log, *log.words(2), *log.write(END))
        await reader.end()
    assert got(reader) == expected(log, 40)


@pytest.mark.parametrize("start", [31, 41])
async def test_as_much_as_the_cap_is_replayed_one_by_one(start: int):
    log = long_log(41)
    async with serving(log, cap=CAP) as gateway:
        reader = Reader(gateway, log, start)
        await until(lambda: log.reads, "the replay")
        await publish(log, *log.write(END))
        await reader.end()
    assert reader.ids == list(range(start, 42))
    assert log.folds == []


async def test_of_a_finished_run_the_end_comes_by_itself():
    log = long_log(41)
    log.write(END)
    async with serving(log, cap=CAP) as gateway:
        reader = Reader(gateway, log)
        await reader.end()
    assert reader.ids == [40, 41]
    assert got(reader) == expected(log, 40)


async def test_both_ends_of_the_agent_protocol_understand_it():
    log = long_log(41)
    log.write(END)
    frames: list[bytes] = []
    async with serving(log, cap=CAP) as gateway:
        stream = gateway.stream(log.run_id, start=0, reach=42, encode=agent.encode)
        frames += [chunk async for chunk in stream]
    messages = [
        json.loads(line.removeprefix("data: "))
        for line in b"".join(frames).decode().split("\n")
        if line.startswith("data: ")
    ]
    assert [message["type"] for message in messages] == ["snapshot", "run_completed"]
    assert messages[0]["state"] == fold(str(log.run_id), log.events[:-1])
    state = initial_agent_state(str(log.run_id))
    for message in messages:
        state = reduce_agent_event(state, message)
    assert state == fold(str(log.run_id), log.events)


async def test_a_hundred_clients_at_once_cost_one_fold_and_one_encoding():
    log = long_log(500)
    encoded: list[int] = []

    def counting(run_id, event):
        encoded.append(event.seq)
        return koda.encode(run_id, event)

    async with serving(log, cap=CAP) as gateway:
        readers = [Reader(gateway, log, encode=counting) for _ in range(100)]
        for reader in readers:
            await watching(reader, 499)
        assert log.folds == [0]
        assert encoded == [499]
        await publish(log, *log.write(END))
        for reader in readers:
            await reader.end()
    assert {got(reader) for reader in readers} == {expected(log, 499)}


async def test_a_snapshot_serves_until_it_leaves_more_than_the_cap_and_then_goes_on():
    log = long_log(41)
    async with serving(log, cap=CAP) as gateway:
        for more, through in ((0, 40), (CAP, 40), (1, 51)):
            log.words(more)
            reader = Reader(gateway, log)
            await watching(reader, len(log.events) - 1)
            assert got(reader) == expected(log, through)
            reader.task.cancel()
    assert log.folds == [0, 41]


async def test_what_arrives_while_the_log_is_folded_comes_once_and_behind_it():
    log = long_log(41)
    log.gate.clear()
    async with serving(log, cap=CAP) as gateway:
        reader = Reader(gateway, log)
        await until(lambda: log.folds, "the fold")
        await publish(log, *log.words(3))
        log.gate.set()
        await watching(reader, 43)
        await publish(log, *log.write(END))
        await reader.end()
    assert got(reader) == expected(log, reader.ids[0])


async def test_a_slow_reader_who_catches_up_gets_every_event(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("streaming.watcher.MAX_EVENTS", 10)
    log = long_log(1)
    async with serving(log, cap=CAP) as gateway:
        stream = gateway.stream(log.run_id, start=0, reach=1, encode=koda.encode)
        chunks = [await anext(stream), await anext(stream)]
        watcher = next(iter(next(iter(gateway.hub._watched.values())).watchers))
        for _ in range(5):
            await publish(log, *log.words(40))
        await until(lambda: watcher.overflowed, "the buffer to overflow")
        await publish(log, *log.write(END))
        chunks += [chunk async for chunk in stream]
    ids = [line for line in b"".join(chunks).decode().split("\n") if line.startswith("id:")]
    assert ids == [f"id: {n}" for n in range(202)]
    assert log.folds == []


async def test_a_log_that_is_collapsed_under_a_reader_goes_on_with_the_snapshot():
    log = long_log(2000)
    log.write(END)
    async with serving(log) as gateway:
        stream = gateway.stream(log.run_id, start=0, encode=koda.encode)
        chunks = [await anext(stream), await anext(stream)]
        made = projection.Projection(str(log.run_id))
        made.extend(log.events)
        log.collapsed = [made.snapshot(), log.events[-1]]
        chunks += [chunk async for chunk in stream]
    lines = b"".join(chunks).decode().split("\n")
    ids = [int(line[4:]) for line in lines if line.startswith("id:")]
    assert ids[-2:] == [1999, 2000]
    assert ids[:-2] == list(range(len(ids) - 2))
    assert lines.count("event: snapshot") == 1


async def test_a_state_too_large_for_one_event_is_replayed_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(projection, "MAX_SNAPSHOT", 100)
    log = long_log(200)
    log.write(END)
    async with serving(log, cap=CAP) as gateway:
        for _ in range(2):
            reader = Reader(gateway, log)
            await reader.end()
            assert reader.ids == list(range(201))
    assert log.folds == [0]


async def test_a_database_that_is_away_delays_the_snapshot():
    log = long_log(41)
    log.write(END)
    log.broken = True
    async with serving(log, cap=CAP) as gateway:
        reader = Reader(gateway, log)
        await until(lambda: len(log.folds) >= 2, "two folds in vain")
        log.broken = False
        await reader.end()
    assert got(reader) == expected(log, 40)


async def test_a_snapshot_is_handed_to_the_server_in_small_pieces():
    log = Log()
    log.write(STARTED, events.delta("x" * 1_000_000), *[events.delta("y")] * 20, END)
    async with serving(log, cap=CAP) as gateway:
        reader = Reader(gateway, log)
        await reader.end()
    assert max(map(len, reader.raw)) == PIECE
    assert got(reader) == expected(log, 21)


async def test_only_the_states_asked_for_most_recently_are_kept(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(snapshots, "MOST_SIZE", 5_000)
    logs = [Log() for _ in range(5)]
    for log in logs:
        log.write(STARTED, *[events.delta("x" * 100)] * 20)
    by_id = {str(log.run_id): log for log in logs}
    kept = snapshots.Snapshots(cap=CAP, extend=lambda made: by_id[made.run_id].extend(made))
    for log in [*logs, logs[-1], logs[0]]:
        found = await kept.instead_of(log.run_id, 0, 21)
        assert found is not None
        assert found.event.type == EventType.SNAPSHOT
    assert [len(log.folds) for log in logs] == [2, 1, 1, 1, 1]
    assert sum(one.projection.size for one in kept._kept.values()) <= 5_000
    assert asyncio.all_tasks() == {asyncio.current_task()}
