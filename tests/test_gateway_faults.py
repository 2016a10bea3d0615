"""The gateway when something is away, slow, huge or over: clients are told, and lose nothing."""

from __future__ import annotations

import asyncio
from uuid import UUID

import pytest

from runs import events
from runs.events import StoredEvent
from streaming import groups, hub, wire
from streaming.line import LineSettings
from streaming.protocols import koda
from streaming.stretch import Reading
from tests.reading import END, Log, Reader, publish, publish_when_watching, serving, watching
from tests.waiting import until


async def test_a_hole_that_is_nowhere_tells_the_client_to_reconnect():
    log = Log()
    async with serving(log) as gateway:
        reader = Reader(gateway, log)
        await publish_when_watching(log, reader)
        hidden, kept = log.words(2)
        log.hidden.add(hidden.seq)
        await publish(log, kept)
        await reader.end()
    assert reader.ids == [0]
    assert '"code":"gap"' in reader.frames[-1]
    assert not reader.frames[-1].startswith("id:")


async def test_a_client_that_stalls_costs_a_bounded_buffer_and_misses_nothing(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("streaming.watcher.MAX_EVENTS", 10)
    log = Log()
    async with serving(log) as gateway:
        stream = gateway.stream(log.run_id, start=0, encode=koda.encode)
        assert await anext(stream) == wire.PRELUDE
        first = asyncio.create_task(anext(stream))
        await until(lambda: log.reads, "the replay")
        await publish(log, *log.words(1))
        got = [await first]
        watcher = next(iter(next(iter(gateway.hub._watched.values())).watchers))
        for _ in range(10):
            await publish(log, *log.words(10))
        await until(lambda: watcher.overflowed, "the buffer to overflow")
        assert len(watcher._arrived) <= 11
        await publish(log, *log.write(END))
        got += [chunk async for chunk in stream]
    ids = [line for line in b"".join(got).decode().split("\n") if line.startswith("id:")]
    assert ids == [f"id: {n}" for n in range(102)]


async def test_silence_is_broken_by_pings_and_the_connection_lives_on():
    log = Log()
    chatty = LineSettings(ping_interval=0.05, gap_wait=0.15, orderer_cap=64)
    async with serving(log, chatty) as gateway:
        reader = Reader(gateway, log)
        await until(lambda: reader.raw.count(wire.PING) >= 5, "five pings")
        await publish(log, *log.words(1))
        await until(lambda: reader.raw[-1] == wire.PING and 0 in reader.ids, "pings after it")
        await publish(log, *log.write(END))
        await reader.end()
    assert reader.ids == [0, 1]


async def test_a_payload_too_big_for_the_layer_is_read_from_the_log():
    log = Log()
    async with serving(log) as gateway:
        reader = Reader(gateway, log)
        await publish_when_watching(log, reader)
        [huge] = log.write(events.delta("x" * 300_000))
        assert "events" not in groups.events_message(log.run_id, [huge])
        await publish(log, huge)
        await watching(reader, 1)
        await publish(log, *log.write(END))
        await reader.end()
    assert reader.ids == [0, 1, 2]


async def test_a_replay_of_huge_events_holds_little_of_it_at_a_time():
    log = Log()
    log.write(*(events.delta("x" * 65_536) for _ in range(300)), END)
    limits: list[int] = []
    read = log.read

    async def noted(run_id: UUID, start: int, limit: int, known: bool) -> Reading:
        limits.append(limit)
        return await read(run_id, start, limit, known)

    log.read = noted
    async with serving(log) as gateway:
        reader = Reader(gateway, log)
        await reader.end()
    assert reader.ids == list(range(301))
    assert max(limits) * 65_536 <= 4 * 1024 * 1024
    assert limits[-1] * 65_536 <= 1024 * 1024


async def test_a_long_replay_of_small_events_takes_ever_bigger_steps():
    log = Log()
    log.words(3000)
    log.write(END)
    async with serving(log) as gateway:
        reader = Reader(gateway, log)
        await reader.end()
    assert reader.ids == list(range(3001))
    assert len(log.reads) < 12


async def test_a_shutdown_says_reconnect_and_ends_every_stream():
    log = Log()
    async with serving(log) as gateway:
        readers = [Reader(gateway, log) for _ in range(3)]
        for reader in readers:
            await publish_when_watching(log, reader)
        gateway.hub.drain()
        for reader in readers:
            await reader.end()
            assert '"code":"reconnect"' in reader.frames[-1]


async def test_a_deleted_run_ends_with_gone():
    log = Log()
    async with serving(log) as gateway:
        reader = Reader(gateway, log)
        await publish_when_watching(log, reader)
        gone = {"type": "koda.gone", "run": str(log.run_id)}
        await groups.send([(groups.run_group(log.run_id), gone)])
        await reader.end()
    assert '"code":"gone"' in reader.frames[-1]


async def test_a_deletion_that_was_not_heard_is_found_by_the_sweep():
    log = Log()
    async with serving(log, sweep=0.1) as gateway:
        reader = Reader(gateway, log)
        await publish_when_watching(log, reader)
        log.deleted = True
        await reader.end()
    assert '"code":"gone"' in reader.frames[-1]


async def test_a_database_that_is_away_keeps_the_client_waiting_not_leaving():
    log = Log()
    log.words(3)
    async with serving(log) as gateway:
        log.broken = True
        reader = Reader(gateway, log)
        await until(lambda: len(log.reads) >= 2, "two reads in vain")
        log.broken = False
        await watching(reader, 2)
        await publish(log, *log.write(END))
        await reader.end()
    assert reader.ids == [0, 1, 2, 3]


async def test_an_unexpected_error_ends_with_a_frame_not_with_silence(
    monkeypatch: pytest.MonkeyPatch,
):
    log = Log()
    log.words(1)

    def broken(run_id: UUID, event: StoredEvent) -> bytes:
        raise ValueError("cannot be encoded")

    async with serving(log) as gateway:
        stream = gateway.stream(log.run_id, start=0, encode=broken)
        got = [chunk async for chunk in stream]
    assert b'"code":"internal"' in got[-1]


async def test_watchers_that_leave_leave_nothing_behind(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(hub, "LINGER", 0.05)
    log = Log()
    async with serving(log) as gateway:
        readers = [Reader(gateway, log) for _ in range(20)]
        for reader in readers:
            await publish_when_watching(log, reader)
        for reader in readers:
            reader.task.cancel()
        await until(lambda: gateway.hub.watchers == 0, "all to leave")
        await until(lambda: gateway.hub._watched == {}, "the group to be left")
        await until(lambda: len(gateway.hub._tasks) == 3, "only the hub's own tasks to be left")


async def test_who_comes_back_at_once_finds_the_group_joined():
    log = Log()
    async with serving(log) as gateway:
        first = Reader(gateway, log)
        await publish_when_watching(log, first)
        joined = gateway.hub._watched[log.run_id]
        first.task.cancel()
        await until(lambda: gateway.hub.watchers == 0, "the first to leave")
        second = Reader(gateway, log)
        await until(lambda: gateway.hub.watchers == 1, "the second to come")
        assert gateway.hub._watched[log.run_id] is joined
        assert joined.leaving is None
        second.task.cancel()
        await until(lambda: gateway.hub._watched == {}, "the group to be left")


async def test_a_subscription_that_cannot_be_confirmed_delays_and_loses_nothing(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(hub, "CONFIRM_PATIENCE", 0.1)
    send = groups.send
    deaf = True

    async def lossy(messages) -> None:
        if not deaf:
            await send(messages)

    monkeypatch.setattr(groups, "send", lossy)
    log = Log()
    log.words(2)
    async with serving(log, sweep=0.1) as gateway:
        reader = Reader(gateway, log)
        await watching(reader, 1)
        log.words(1)
        await watching(reader, 2)
        deaf = False
        await publish(log, *log.write(END))
        await reader.end()
    assert reader.ids == [0, 1, 2, 3]


async def test_a_layer_that_is_down_from_the_start_delays_and_loses_nothing(
    monkeypatch: pytest.MonkeyPatch,
):
    class Down:
        async def down(self, *args: object) -> None:
            raise ConnectionError("no layer")

        new_channel = receive = group_add = group_discard = group_send = down

        async def flush(self) -> None:
            """Nothing to clear."""

    monkeypatch.setattr(hub, "CONFIRM_PATIENCE", 0.1)
    monkeypatch.setattr(groups, "layer", Down)
    log = Log()
    log.words(2)
    async with serving(log, sweep=0.1) as gateway:
        reader = Reader(gateway, log)
        await watching(reader, 1)
        log.words(1)
        await watching(reader, 2)
        log.write(END)
        await reader.end()
    assert reader.ids == [0, 1, 2, 3]
