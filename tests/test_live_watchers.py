"""Watchers: how many, whose, how slow, and what they cost."""

import asyncio
from collections import Counter
from uuid import uuid4

import pytest

from tests.live_client import rows, text_of
from tests.waiting import until

pytest_plugins = ["tests.live"]

EVENTS = 32
"""What `rounds` makes of ten rounds: run_started, three a round, run_completed."""
HELD = 16
"""How many of them are out while it waits for its gate."""


async def test_two_watchers_and_a_late_third_see_what_is_stored(live):
    gate = live.gate()
    async with live.visitor() as visitor:
        run_id = await visitor.ask("rounds", gate=str(gate))
        async with visitor.watch(run_id) as one, visitor.watch(run_id) as two:
            early = [await one.take(HELD), await two.take(HELD)]
            async with visitor.watch(run_id) as three:
                gate.touch()
                ends = await asyncio.gather(one.to_end(), two.to_end(), three.to_end())
        log = await visitor.log(run_id)
        assert rows(early[0] + ends[0]) == rows(early[1] + ends[1]) == rows(ends[2]) == log
        assert len(log) == EVENTS


async def test_many_joining_a_fast_run_at_any_moment_see_all_of_it(live):
    async with live.visitor() as visitor:
        run_id = await visitor.ask("words", count=300, pace=0.002)
        watchers = [asyncio.create_task(visitor.read(run_id))]
        async with visitor.watch(run_id) as clock:
            while await clock.take(10):
                watchers.append(asyncio.create_task(visitor.read(run_id)))
        log = await visitor.log(run_id)
        assert text_of(log) == "".join(f"w{number} " for number in range(300))
        assert [seq for seq, _, _ in log] == list(range(len(log)))
        for transcript in await asyncio.gather(*watchers):
            assert rows(transcript) == log


async def test_a_run_goes_on_when_everybody_has_left(live):
    gate = live.gate()
    async with live.visitor() as visitor:
        run_id = await visitor.ask("rounds", gate=str(gate))
        async with visitor.watch(run_id) as stream:
            await stream.take(HELD)
        gate.touch()
        await until(lambda: live.status(run_id) == "done", "the end of the run", timeout=30)
        assert len(await visitor.log(run_id)) == EVENTS


async def test_a_watcher_that_does_not_read_delays_nobody_and_misses_nothing(live):
    async with live.visitor() as visitor, live.visitor(receive_buffer=65_536) as sleepy:
        run_id = await visitor.ask("words", count=300, size=20_000)
        sleepy.http.cookies = visitor.http.cookies
        async with sleepy.watch(run_id) as stalled:
            await stalled.next()
            reading = await visitor.read(run_id)
            assert rows(reading) == await visitor.log(run_id)
            assert sum(len(frame.data.get("text", "")) for frame in reading) == 6_000_000
            assert rows(await stalled.to_end()) == rows(reading)


@pytest.mark.parametrize("known", ["foreign", "missing"])
async def test_a_run_or_conversation_of_others_does_not_exist(live, known):
    async with live.visitor() as owner, live.visitor() as stranger:
        conversation = await owner.conversation("words")
        run_id = (await owner.say(conversation, "mine"))["run"]["id"]
        await owner.read(run_id)
        await stranger.conversation()
        if known == "missing":
            conversation, run_id = str(uuid4()), str(uuid4())
        before = await owner.call("GET", "conversations")
        calls = [
            ("GET", f"runs/{run_id}", {}),
            ("GET", f"runs/{run_id}/stream", {"headers": {"Last-Event-ID": "0"}}),
            ("GET", f"runs/{run_id}/stream", {"params": {"last_event_id": "999"}}),
            ("GET", f"runs/{run_id}/events", {}),
            ("POST", f"runs/{run_id}/cancel", {}),
            ("GET", f"conversations/{conversation}", {}),
            ("PATCH", f"conversations/{conversation}", {"json": {"title": "yours"}}),
            ("DELETE", f"conversations/{conversation}", {}),
            ("POST", f"conversations/{conversation}/messages", {"json": {"text": "hello"}}),
        ]
        answers = [await stranger.call(*call, expect=404, **more) for *call, more in calls]
        assert Counter(map(str, answers)) == Counter({str(answers[0]): len(calls)})
        assert answers[0]["code"] == "not_found"
        assert await owner.call("GET", "conversations") == before


# What it costs --------------------------------------------------------------------------------


async def test_silence_is_filled_with_pings_on_a_stream_that_no_middleware_compresses(launch):
    system = launch(KODA_PING_INTERVAL="0.2", DJANGO_SETTINGS_MODULE="tests.gzip_settings")
    gate = system.gate()
    async with system.visitor() as visitor:
        page = await visitor.http.get("/")
        assert page.headers["Content-Encoding"] == "gzip", "the middleware is not at work"
        run_id = await visitor.ask("rounds", gate=str(gate))
        async with visitor.watch(run_id, headers={"Accept-Encoding": "gzip"}) as stream:
            assert "gzip" not in stream.headers.get("Content-Encoding", "")
            before = await stream.take(HELD)
            for _ in range(3):
                assert (await stream.next()).line == ": ping"
            gate.touch()
            assert rows(before + await stream.to_end()) == await visitor.log(run_id)
