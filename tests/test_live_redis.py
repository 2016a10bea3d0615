"""Redis that dies and comes back under a running system: it delays, and loses nothing."""

from __future__ import annotations

import asyncio

import pytest

from tests.faults import LEASES
from tests.live import Launcher
from tests.live_client import Follower, rows, text_of
from tests.servers import redis
from tests.waiting import until

WORDS = 100


@pytest.mark.parametrize("how", ["while the run goes on", "before anybody asks"])
async def test_redis_down_delays_and_loses_nothing(launch: Launcher, how: str):
    with redis() as server:
        system = launch(split=True, REDIS_URL=server.url, **LEASES)
        async with system.visitor() as visitor:
            if how == "before anybody asks":
                server.kill()
            run_id = await visitor.ask("words", count=WORDS, pace=0.02)
            watcher = Follower(visitor, run_id, system.gateway.reachable)
            following = asyncio.create_task(watcher.follow())
            if how == "while the run goes on":
                await until(lambda: len(watcher.events) >= 20, "twenty events")
                server.kill()
            await asyncio.wait_for(following, 30)
            log, run = await visitor.log(run_id), await visitor.run(run_id)
            assert rows(watcher.events) == log
            assert (run["status"], run["attempt"]) == ("done", 1)
            assert run["output"] == text_of(log) == "".join(f"w{n} " for n in range(WORDS))

            cancelled = await visitor.ask("silent", gate=str(system.gate()))
            answer = await visitor.call("POST", f"runs/{cancelled}/cancel")
            assert answer["status"] == "cancelled"

            server.start()
            again = await visitor.ask("words", count=5)
            assert [frame.id for frame in await visitor.read(again)][-1] is not None
            assert (await visitor.run(again))["status"] == "done"


async def test_a_correction_while_redis_is_down_is_answered(launch: Launcher):
    with redis() as server:
        system = launch(split=True, REDIS_URL=server.url, **LEASES)
        async with system.visitor() as visitor:
            conversation = await visitor.conversation("words")
            asked = await visitor.say(conversation, "one", metadata={"count": WORDS, "pace": 0.02})
            run_id = asked["run"]["id"]
            watcher = Follower(visitor, run_id, system.gateway.reachable)
            following = asyncio.create_task(watcher.follow())
            await until(lambda: len(watcher.events) >= 10, "ten events")
            server.kill()
            merged = await visitor.say(conversation, "two", expect=200)
            assert merged["merged"] is True
            await asyncio.wait_for(following, 30)
            log = await visitor.log(run_id)
    restarted = [data["inputs"] for _, type, data in log if type == "run_restarted"]
    assert restarted == [["one", "two"]]
    assert rows(watcher.events) == log
