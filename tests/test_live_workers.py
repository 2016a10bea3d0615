"""Real workers that die, freeze, restart, or are not there when they are wanted."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import Iterator
from uuid import UUID

import pytest
import redis

from tests.faults import FAULTS, LEASES, fault_in_mid_run, owner, two_workers
from tests.live import Launcher, System
from tests.live_client import Follower, Visitor, rows, text_of
from tests.live_databases import Databases
from tests.waiting import until

LEASE = float(LEASES["KODA_LEASE"])
SWEEP = float(LEASES["KODA_SWEEP_INTERVAL"])


def forget(system: System) -> None:
    """Wipe Redis, where there is one."""
    if system.redis_url:
        with contextlib.closing(redis.Redis.from_url(system.redis_url)) as client:
            client.flushdb()


@pytest.fixture(scope="module")
def pair(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """A gateway and two workers with leases of three seconds."""
    with two_workers(databases, tmp_path_factory.mktemp("pair")) as system:
        yield system


@pytest.mark.parametrize("fault", list(FAULTS))
async def test_a_fault_in_mid_run_costs_seconds_and_not_the_answer(pair: System, fault: str):
    async with pair.visitor() as visitor:
        outcome = await fault_in_mid_run(pair, visitor, fault)
    assert outcome.violations == []
    assert outcome.attempt == 2
    assert outcome.held_up < LEASE + SWEEP + 2


async def test_numbers_go_on_where_the_dead_worker_stopped(pair: System):
    async with pair.visitor() as visitor:
        run_id = await visitor.ask("words", count=90, pace=0.02)
        watcher = Follower(visitor, run_id, pair.gateway.reachable)
        following = asyncio.create_task(watcher.follow())
        await until(lambda: len(watcher.events) >= 41, "run_started and 40 words")
        killed = owner(pair, run_id)
        killed.kill()
        sql = "SELECT count(*) FROM koda_messages WHERE run_id = %s"
        [(stored,)] = pair.database.rows(sql, UUID(run_id).hex)
        await following
        killed.start()
        log = await visitor.log(run_id)
    restarted = next(seq for seq, type, _ in log if type == "run_restarted")
    assert restarted == stored
    assert rows(watcher.events) == log
    assert "IntegrityError" not in "".join(program.log() for program in pair.programs)


async def test_a_tool_that_kills_its_process_fails_its_run_and_no_other(launch: Launcher):
    system = launch(
        split=True,
        **{
            **LEASES,
            "KODA_LEASE": "1",
            "KODA_HEARTBEAT": "0.3",
            "KODA_MAX_ATTEMPTS": "2",
            "KODA_AGENTS": "deadly=tests.fault_agents.deadly,words=tests.live_agents.words",
        },
    )
    async with system.visitor() as visitor:
        run_id = await visitor.ask("deadly")
        supervised = asyncio.create_task(supervise(system))
        try:
            await until(lambda: system.status(run_id) == "failed", "the end", timeout=60)
            other = await visitor.ask("words", count=5)
            await until(lambda: system.status(other) == "done", "another run", timeout=30)
        finally:
            supervised.cancel()
        failed = await visitor.run(run_id)
        log = await visitor.log(run_id)
        assert (await visitor.call("POST", f"runs/{run_id}/cancel"))["status"] == "failed"
    assert failed["error"]["code"] == "worker_lost"
    assert failed["attempt"] == 2
    assert [type for _, type, _ in log].count("run_restarted") == 1
    assert log[-1][1] == "run_failed"


async def supervise(system: System) -> None:
    """What systemd or compose does: start the worker again whenever it has ended."""
    while True:
        await until(system.worker.ended, "the death of the worker", timeout=100)
        system.worker.launch()


async def test_a_dead_worker_a_wiped_redis_and_a_new_message_still_end_in_an_answer(
    launch: Launcher,
):
    system = launch(split=True, **LEASES)
    async with system.visitor() as visitor:
        conversation = await visitor.conversation("words")
        asked = await visitor.say(conversation, "one", metadata={"count": 60, "pace": 0.02})
        run_id = asked["run"]["id"]
        watcher = Follower(visitor, run_id, system.gateway.reachable)
        following = asyncio.create_task(watcher.follow())
        await until(lambda: len(watcher.events) >= 10, "ten events")
        system.worker.kill()
        forget(system)
        merged = await visitor.say(conversation, "two", expect=200)
        assert merged["run"]["id"] == run_id
        system.worker.launch()
        await asyncio.wait_for(following, LEASE + SWEEP + 20)
        log = await visitor.log(run_id)
        run = await visitor.run(run_id)
    assert rows(watcher.events) == log
    assert [given["text"] for given in run["inputs"]] == ["one", "two"]
    restarted = [data for _, type, data in log if type == "run_restarted"]
    assert restarted[-1]["inputs"] == ["one", "two"]
    assert run["status"] == "done"


async def test_a_message_to_nobody_is_answered_once_when_a_worker_comes(launch: Launcher):
    system = launch(split=True, **LEASES)
    system.worker.terminate()
    await until(system.worker.ended, "the end of the worker")
    async with system.visitor() as visitor:
        run_ids = [await visitor.ask("words", count=3) for _ in range(5)]
        forget(system)
        system.worker.start()
        for run_id in run_ids:
            await until(lambda: system.status(run_id) == "done", "an answer", timeout=5)  # noqa: B023
            log = await visitor.log(run_id)
            assert [type for _, type, _ in log].count("run_started") == 1


async def test_cancel_around_the_end_leaves_one_terminal_state_everywhere(pair: System):
    """Two hundred runs of half a second, each cancelled within 20 ms of its end."""
    rng = random.Random(31)

    async def one(visitor: Visitor) -> str:
        run_id = await visitor.ask("words", count=5, pace=0.02)
        watcher = Follower(visitor, run_id, pair.gateway.reachable)
        following = asyncio.create_task(watcher.follow())
        await until(lambda: "w3 " in said(watcher), "the run to be nearly over", timeout=30)
        due = asyncio.get_running_loop().time() + 0.02 + rng.uniform(-0.02, 0.02)
        await until(lambda: asyncio.get_running_loop().time() >= due, "the moment")
        answer = await visitor.call("POST", f"runs/{run_id}/cancel")
        await following
        log = await visitor.log(run_id)
        assert rows(watcher.events) == log
        assert answer["status"] == (await visitor.run(run_id))["status"] == pair.status(run_id)
        assert (
            log[-1][1] == {"done": "run_completed", "cancelled": "run_cancelled"}[answer["status"]]
        )
        assert answer["output"] == text_of(log)
        return str(answer["status"])

    async with pair.visitor() as visitor:
        ended = Counter[str]()
        for _ in range(20):
            ended.update(await asyncio.gather(*(one(visitor) for _ in range(10))))
    assert sum(ended.values()) == 200
    assert set(ended) <= {"done", "cancelled"}


def said(watcher: Follower) -> str:
    return text_of([(frame.id or 0, frame.event or "", frame.data) for frame in watcher.events])


@pytest.mark.parametrize("how", ["cancel", "error", "SIGTERM"])
async def test_what_is_stored_at_the_end_is_what_was_streamed(launch: Launcher, how: str):
    """A batch is always pending here: writes are as far apart as the settings allow."""
    system = launch(split=True, **{**LEASES, "KODA_FLUSH_INTERVAL": "0.2"})
    agent = "failing" if how == "error" else "words"
    async with system.visitor() as visitor:
        conversation = await visitor.conversation(agent)
        asked = await visitor.say(conversation, "one", metadata={"count": 100, "pace": 0.01})
        run_id = asked["run"]["id"]
        watcher = Follower(visitor, run_id, system.gateway.reachable)
        following = asyncio.create_task(watcher.follow())
        if how != "error":
            await until(lambda: len(watcher.events) >= 3, "some text")
        if how == "cancel":
            await visitor.call("POST", f"runs/{run_id}/cancel")
        if how == "SIGTERM":
            system.worker.terminate()
            await until(system.worker.ended, "the end of the worker", timeout=20)
            system.worker.launch()
        await following
        log, run = await visitor.log(run_id), await visitor.run(run_id)
    assert rows(watcher.events) == log
    assert run["output"] == text_of(log) != ""
    assert run["status"] == {"cancel": "cancelled", "error": "failed", "SIGTERM": "done"}[how]
