"""What the tests of races share: a keeper driven by hand, calls at the same time, a started run."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from django.db import connection
from django.db.models.functions import Now

from runs.lease import LeaseKeeper, LeaseTimes
from runs.models import Conversation, Run
from runs.states import Status
from runs.writes import Claimed
from tests.fakes import LEASE, RecordingPort
from tests.workers import Stage, asked, db, reaches


def expire(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(lease_expires_at=Now() - timedelta(seconds=1))


def keeper(worker: str = "w2", *, held=(), free: int = 1, attempts: int = 3):
    """A lease keeper that is driven by hand, with the lists of what it took and announced."""
    took, announced = [], []
    made = LeaseKeeper(
        worker=worker,
        times=LeaseTimes(lease=30, heartbeat=10, sweep_interval=2, run_timeout=600),
        max_attempts=attempts,
        held=lambda: held,
        free=lambda: free - len(took),
        adopt=took.append,
        announce=announced.append,
    )
    return made, took, announced


def together(*calls):
    """Run the calls at the same time, each on a thread and connection of its own."""
    barrier = threading.Barrier(len(calls))

    def run(call):
        barrier.wait()
        try:
            return call()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(calls)) as threads:
        return list(threads.map(run, calls))


def take_over_soon(run: Run) -> Claimed:
    """Like the sweep: a row that is locked right now is for the next time."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if taken := Run.objects.take_over(run.pk, worker="w2", lease=LEASE):
            return taken
    raise AssertionError("never taken over")


async def started(port: RecordingPort, stage: Stage) -> tuple[Conversation, Run]:
    """A conversation whose run has said one word."""
    conversation, run = await asked()
    stage.say.put_nowait("one ")
    await reaches(run, Status.STREAMING)
    return conversation, run


async def until_released(run: Run) -> None:
    async with asyncio.timeout(10):
        while (await db(Run.objects.get, pk=run.pk)).claimed_by != "":
            pass
