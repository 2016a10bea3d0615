"""The gateway on the configured channel layer: replay, follow, and mend what the layer loses."""

from __future__ import annotations

from streaming import wire
from streaming.line import LineSettings
from streaming.protocols import koda
from tests.reading import END, Log, Reader, publish, publish_when_watching, serving, watching
from tests.waiting import until


async def test_replay_then_live_overlap_is_delivered_once_and_in_order():
    log = Log()
    log.words(5)
    async with serving(log) as gateway:
        reader = Reader(gateway, log)
        await watching(reader, 4)
        await publish(log, *log.events[3:], *log.words(3))
        await publish(log, *log.write(END))
        await reader.end()
    assert reader.raw[0] == wire.PRELUDE
    assert reader.ids == list(range(9))


async def test_what_is_published_while_the_replay_reads_is_not_lost():
    log = Log()
    log.words(3)
    async with serving(log) as gateway:
        log.gate.clear()
        reader = Reader(gateway, log)
        await until(lambda: log.reads, "the replay to begin")
        await publish(log, *log.words(4))
        await publish(log, *log.write(END))
        log.gate.set()
        await reader.end()
    assert reader.ids == list(range(8))


async def test_a_lost_message_is_read_from_the_log_without_waiting_for_the_next_one():
    log = Log()
    async with serving(log) as gateway:
        reader = Reader(gateway, log)
        await publish_when_watching(log, reader)
        _lost, kept = log.words(2)
        await publish(log, kept)
        await watching(reader, 2)
        assert reader.ids == [0, 1, 2]
        await publish(log, *log.write(END))
        await reader.end()


async def test_too_many_held_events_are_read_from_the_log_at_once():
    log = Log()
    patient = LineSettings(ping_interval=30, gap_wait=60, orderer_cap=8)
    async with serving(log, patient) as gateway:
        reader = Reader(gateway, log)
        await publish_when_watching(log, reader)
        _lost, *kept = log.words(12)
        for event in kept:
            await publish(log, event)
        await watching(reader, 12)
        assert reader.ids == list(range(13))
        await publish(log, *log.write(END))
        await reader.end()


async def test_the_last_message_lost_is_found_by_the_sweep():
    log = Log()
    async with serving(log, sweep=0.1) as gateway:
        reader = Reader(gateway, log)
        await publish_when_watching(log, reader)
        log.write(END)
        await reader.end()
    assert reader.ids == [0, 1]


async def test_shuffled_repeated_and_dropped_messages_make_the_same_transcript():
    log = Log()
    async with serving(log, sweep=0.1) as gateway:
        readers = [Reader(gateway, log) for _ in range(3)]
        for reader in readers:
            await publish_when_watching(log, reader)
        stored = [*log.words(40), *log.write(END)]
        disturbed = [event for event in stored if event.seq % 7] * 2
        disturbed.sort(key=lambda event: (event.seq * 7919) % 41)
        for event in disturbed:
            await publish(log, event)
        for reader in readers:
            await reader.end()
    expected = b"".join(koda.encode(log.run_id, event) for event in log.events)
    for reader in readers:
        assert b"".join(reader.raw[1:]) == expected
