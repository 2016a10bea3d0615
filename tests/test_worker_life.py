"""A worker's own life: listed, stopped, asleep."""

from __future__ import annotations

import asyncio
import time

import pytest
from django.db import OperationalError

from runs import services
from runs.lookout import Lookout
from runs.models import Run, WorkerProcess
from runs.threads import DatabaseThreads
from tests.fakes import RecordingPort
from tests.waiting import until
from tests.workers import Stage, db, visitor_conversation, working

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_worker_is_listed_while_it_works_and_not_afterwards(port: RecordingPort):
    stage = Stage()
    conversation = await visitor_conversation()
    await db(services.submit, conversation, "question")
    async with working(port, scripted=stage.respond) as worker:
        listed = await db(lambda: list(WorkerProcess.objects.values_list("name", "concurrency")))
        while not listed:
            listed = await db(
                lambda: list(WorkerProcess.objects.values_list("name", "concurrency"))
            )
        assert listed == [(worker.name, 20)]
        await until(lambda: stage.turns, "the question")
        stage.say.put_nowait(None)
    assert not await db(WorkerProcess.objects.exists)


async def test_a_worker_told_to_stop_while_the_database_is_away_stops(
    port: RecordingPort, monkeypatch: pytest.MonkeyPatch
):
    tried = []

    def away(**kwargs):
        tried.append(kwargs)
        raise OperationalError("connection refused")

    monkeypatch.setattr(Run.objects, "claim", away)
    async with asyncio.timeout(10):
        async with working(port, scripted=Stage().respond):
            await until(lambda: tried, "a claim in vain")


async def test_a_worker_whose_loop_is_blocked_counts_as_asleep():
    lookout = Lookout({}, DatabaseThreads("unused", threads=1, keep=True))
    assert lookout.awake
    ticking = asyncio.create_task(lookout.tick())
    await until(lambda: True, "a turn of the loop")
    block = time.monotonic() + 1.7
    while time.monotonic() < block:
        pass
    assert not lookout.awake
    ticking.cancel()
