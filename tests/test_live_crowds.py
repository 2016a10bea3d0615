"""Many at once, at two gateways, with a transaction around every request; and after restarts."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import pytest

from tests.live import Launcher, System
from tests.live_client import Visitor, rows
from tests.live_databases import Databases
from tests.program import Program
from tests.servers import Redis, redis
from tests.waiting import until

pytest_plugins = ["tests.live"]


@dataclass
class Crowded:
    system: System
    other: Program
    """The second gateway."""
    redis: Redis | None


@pytest.fixture(scope="module")
def crowded(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crowded]:
    """Two gateways and a worker, with a Redis of their own where there is one."""
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(redis()) if os.environ.get("REDIS_URL") else None
        launcher = Launcher(databases, tmp_path_factory.mktemp)
        stack.enter_context(contextlib.closing(launcher))
        system = launcher(
            split=True,
            DJANGO_SETTINGS_MODULE="tests.atomic_settings",
            KODA_SWEEP_INTERVAL="0.5",
            **({"REDIS_URL": server.url} if server else {}),
        )
        other = system.add("gateway")
        other.wait()
        yield Crowded(system, other, server)


@contextlib.asynccontextmanager
async def both(crowded: Crowded):
    """One visitor at both gateways."""
    async with crowded.system.visitor() as here, crowded.system.visitor(crowded.other) as there:
        there.http.cookies, there.http.headers = here.http.cookies, here.http.headers
        yield here, there


async def test_messages_of_one_conversation_at_two_gateways_are_all_answered_one_run_at_a_time(
    crowded: Crowded,
):
    """C17, C57: the first message of the conversation is among them."""
    async with both(crowded) as visitors:
        conversation = await visitors[0].conversation("words")
        path = f"/api/conversations/{conversation}/messages"
        texts = [f"message {number}" for number in range(20)]
        answers = await asyncio.gather(
            *(
                visitors[number % 2].http.post(path, json={"text": text})
                for number, text in enumerate(texts)
            )
        )
        assert {answer.status_code for answer in answers} <= {200, 201}
        runs = {answer.json()["run"]["id"] for answer in answers}
        for run_id in runs:
            assert (await visitors[1].read(run_id))[-1].event == "run_completed"
        turns = (await visitors[0].call("GET", f"conversations/{conversation}"))["turns"]
        assert {turn["run_id"] for turn in turns} == runs
        said = [given["text"] for turn in turns for given in turn["inputs"]]
        assert sorted(said) == sorted(texts)
        for earlier, later in pairwise(turns):
            assert earlier["finished_at"] <= later["started_at"]


async def test_the_same_key_at_two_gateways_at_once_makes_one_run(crowded: Crowded):
    """C18."""
    async with both(crowded) as visitors:
        conversation = await visitors[0].conversation("words")
        path = f"/api/conversations/{conversation}/messages"
        answers = await asyncio.gather(
            *(
                visitors[number % 2].http.post(
                    path, json={"text": "hi"}, headers={"Idempotency-Key": "once"}
                )
                for number in range(8)
            )
        )
        assert {answer.status_code for answer in answers} == {201}
        [run_id] = {answer.json()["run"]["id"] for answer in answers}
        await visitors[0].read(run_id)
        turns = (await visitors[0].call("GET", f"conversations/{conversation}"))["turns"]
        assert [len(turn["inputs"]) for turn in turns] == [1]


async def test_no_call_fails_while_answers_are_written_and_conversations_are_deleted(
    crowded: Crowded,
):
    """C22, shortened: a writer that is always busy, with posts, cancels and deletes beside it."""
    system = crowded.system
    async with both(crowded) as visitors:
        busy = await visitors[0].ask("words", count=600, pace=0.005)

        async def come_and_go(number: int) -> str:
            visitor = visitors[number % 2]
            conversation = await visitor.conversation("words")
            asked = await visitor.say(conversation, "go", metadata={"count": 50, "pace": 0.01})
            run_id = str(asked["run"]["id"])
            if number % 3 == 0:
                await visitor.call("POST", f"runs/{run_id}/cancel")
            if number % 3 == 1:
                await visitor.call("DELETE", f"conversations/{conversation}", expect=204)
                return ""
            return run_id

        left = [run_id for run_id in await asyncio.gather(*map(come_and_go, range(20))) if run_id]
        for run_id in [busy, *left]:
            frames = await visitors[0].read(run_id)
            assert rows(frames) == await read_log(visitors[0], run_id)
        assert system.status(busy) == "done"
        assert {system.status(run_id) for run_id in left} <= {"done", "cancelled"}
    for program in system.programs:
        assert "database is locked" not in program.log()


async def read_log(visitor: Visitor, run_id: str) -> list[tuple[int, str, object]]:
    """The whole log, page by page."""
    log: list[tuple[int, str, object]] = []
    after: int | None = None
    while True:
        params = {} if after is None else {"after": after}
        page = await visitor.call("GET", f"runs/{run_id}/events", params=params)
        log += [(event["seq"], event["type"], event["data"]) for event in page["events"]]
        if page["next"] is None:
            return log
        after = page["next"]


async def test_after_a_restart_of_gateway_and_redis_readers_get_the_rest_and_then_204(
    crowded: Crowded,
):
    """C15: of runs that are done, failed, cancelled and empty."""
    system = crowded.system
    async with system.visitor() as visitor:
        done, empty = await visitor.ask("words"), await visitor.ask("words", count=0)
        failed, cancelled = await visitor.ask("failing"), await visitor.ask("silent", gate="none")
        await visitor.call("POST", f"runs/{cancelled}/cancel")
        ends = {"done": done, "failed": failed, "cancelled": cancelled}
        for status, run_id in [*ends.items(), ("done", empty)]:
            await until(lambda: system.status(run_id) == status, status)  # noqa: B023
        if crowded.redis:
            crowded.redis.kill()
            crowded.redis.start()
        system.gateway.kill()
        system.gateway.start()
        for run_id in (done, empty, failed, cancelled):
            log = await visitor.log(run_id)
            for last_id in (None, 0, len(log) // 2, len(log) - 2, len(log) - 1):
                if last_id is None or last_id >= 0:
                    rest = log[0 if last_id is None else last_id + 1 :]
                    async with asyncio.timeout(10):
                        assert rows(await visitor.read(run_id, last_id=last_id)) == rest
            async with visitor.watch(run_id, last_id=log[-1][0]) as stream:
                assert stream.status == 204
