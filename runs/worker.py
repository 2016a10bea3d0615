"""The worker: claims runs, drives several at once, and lets them go in good order.

Each side task is small and has a name; one of them dying stops the worker loudly.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import TypeVar
from uuid import UUID, uuid4

from django.db import DatabaseError, InterfaceError

from runs import metrics, reports
from runs.agents.registry import LoadedAgent
from runs.conf import KodaSettings
from runs.emitter import Emitter
from runs.facts import fact
from runs.handover import Handover
from runs.held import Held, Interrupt
from runs.history import load_turn
from runs.lanes import Lanes
from runs.lease import Lease, LeaseKeeper, LeaseTimes
from runs.lookout import Lookout
from runs.models import Run
from runs.ports import Port
from runs.publisher import Publisher
from runs.retention import archive_forever
from runs.runlog import RunLog
from runs.states import Status
from runs.threads import DatabaseThreads, passes, patiently
from runs.turn import Limits, TurnDriver
from runs.writes import Claimed, Ended

logger = logging.getLogger(__name__)

POLL = 1.0
"""Seconds between looks for pending runs, give or take half: what a lost nudge costs."""

DEAD_AFTER = timedelta(hours=1)
"""A worker unheard of for so long is no longer listed."""

MAX_NAME = 100
"""Characters of a worker's name that are kept; the process and the start are added to it."""

FORGET_PATIENCE = 2.0
"""Seconds to take the worker off the list at its end."""

END_PATIENCE = 10.0
"""Seconds that the end may take after a drain: handing back, last messages, goodbyes."""

RELEASE_PATIENCE = 5.0
"""Seconds that handing runs back may take at the end of a drain."""

T = TypeVar("T")


def worker_name(name: str | None = None) -> str:
    """Unique for every start, so that a restarted worker is not taken for the one that died."""
    return f"{(name or socket.gethostname())[:MAX_NAME]}/{os.getpid()}/{uuid4().hex[:8]}"


class Worker:
    """Drives up to `concurrency` runs at once until told to stop."""

    def __init__(
        self,
        *,
        name: str,
        agents: Mapping[str, LoadedAgent],
        port: Port,
        settings: KodaSettings,
        concurrency: int | None = None,
    ) -> None:
        self.name = name
        self._settings = settings
        self._port = port
        self._concurrency = concurrency or settings.worker_concurrency
        self._lease = settings.lease_delta
        self._held: dict[UUID, Held] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._wake = asyncio.Event()
        self._stopping = asyncio.Event()
        self._writes = DatabaseThreads("koda-write", threads=1, keep=True)
        self._reads = DatabaseThreads("koda-read", threads=2, keep=True)
        self._lanes = Lanes()
        self._publisher = Publisher(port.publish)
        self._emitter = Emitter(
            write=lambda batch: self._writes(Run.objects.append, batch, lease=self._lease),
            show=self._publisher.show,
            flush_fragments=settings.flush_fragments,
            flush_interval=settings.flush_interval,
        )
        self._lookout = Lookout(self._held, self._reads)
        handover = Handover(
            worker=name, writes=self._writes, nudge=port.nudge_soon, announce=self._announce
        )
        self._driver = TurnDriver(
            emitter=self._emitter,
            agents=agents,
            load=lambda run: patiently(lambda: self._reads(load_turn, run)),
            release=handover.release,
            abandon=handover.abandon,
            lanes=self._lanes,
            limits=Limits(settings.run_timeout, settings.idle_timeout, settings.max_attempts),
        )

    # Life -----------------------------------------------------------------------------------

    @property
    def longest_end(self) -> float:
        """Seconds after `stop` at which all should be over, with something to spare."""
        return self._settings.drain_timeout + END_PATIENCE

    def stop(self) -> None:
        """Take nothing new; let what runs finish for DRAIN_TIMEOUT, then hand it back."""
        self._stopping.set()
        self._wake.set()

    async def run(self) -> None:
        """Work until stopped. Raises what killed a side task."""
        loop = asyncio.get_running_loop()
        keeper = self._lease_keeper(loop)
        keeper.start()
        logger.info("worker %s: up to %d runs at once", self.name, self._concurrency)
        try:
            async with asyncio.TaskGroup() as group:
                side = [
                    group.create_task(work, name=name)
                    for name, work in (
                        ("emitter", self._emitter.run()),
                        ("publisher", self._publisher.run()),
                        ("nudges", self._port.listen(lambda: self._nudged(keeper))),
                        ("watch", self._lookout.watch()),
                        ("glance", self._lookout.glance()),
                        ("tick", self._lookout.tick()),
                        ("archive", archive_forever(self._settings.fragment_retention_delta)),
                    )
                ]
                await self._claim_until_stopped()
                await asyncio.to_thread(keeper.rest)
                await self._drain()
                await self._publisher.drain(1.0)
                for task in side:
                    task.cancel()
        finally:
            await asyncio.to_thread(keeper.stop)
            with suppress(DatabaseError, InterfaceError, TimeoutError):
                async with asyncio.timeout(FORGET_PATIENCE):
                    await self._writes(reports.forget, self.name)
            self._lanes.close()
            self._reads.close()
            self._writes.close()
            logger.info("worker %s: stopped", self.name)

    def _lease_keeper(self, loop: asyncio.AbstractEventLoop) -> LeaseKeeper:
        settings = self._settings
        return LeaseKeeper(
            worker=self.name,
            times=LeaseTimes(
                settings.lease, settings.heartbeat, settings.sweep_interval, settings.run_timeout
            ),
            max_attempts=settings.max_attempts,
            held=lambda: [
                Lease(held.run.pk, held.run.attempt, held.started, held.last_chance)
                for held in list(self._held.values())
            ],
            free=lambda: self._free() if self._lookout.awake else 0,
            adopt=lambda claimed: _call(loop, self._adopt, claimed),
            announce=lambda ended: _call(loop, self._announce, ended),
            report=self._report,
        )

    def _report(self) -> None:
        """Tell people that this worker lives; those that died without a word are forgotten."""
        reports.report(self.name, concurrency=self._concurrency, running=len(self._held))
        reports.clear_dead(DEAD_AFTER)

    def _nudged(self, keeper: LeaseKeeper) -> None:
        self._wake.set()
        keeper.sweep_soon()

    def _free(self) -> int:
        return self._concurrency - len(self._held)

    # Claiming -------------------------------------------------------------------------------

    async def _claim_until_stopped(self) -> None:
        while not self._stopping.is_set():
            self._wake.clear()
            try:
                if self._free() > 0 and await self._claim_one():
                    continue
            except Exception as error:
                if not passes(error):
                    raise
                logger.warning("database away, nothing claimed: %s", error)
            await _wait(self._wake, POLL * random.uniform(0.5, 1.5))

    async def _claim_one(self) -> bool:
        """Claim a run and start it. False when there is none."""
        claimed = await self._reads(Run.objects.claim, worker=self.name, lease=self._lease)
        if claimed is None:
            return False
        held = self._adopt(claimed)
        fact(logger, "claimed", **held.names)
        metrics.claimed(claimed)
        return True

    def _adopt(self, claimed: Claimed) -> Held:
        run = claimed.run
        held = Held(
            run=run,
            log=RunLog(
                run_id=run.pk,
                attempt=run.attempt,
                worker=self.name,
                seq=run.next_seq,
                streaming=run.status == Status.STREAMING,
                on_refused=lambda error: held.interrupt(Interrupt.LOST),
            ),
            started=time.monotonic(),
            last_chance=claimed.last_chance(self._settings.max_attempts),
        )
        self._held[run.pk] = held
        self._publisher.show(run.pk, claimed.published)
        task = asyncio.create_task(self._drive(held), name=f"run-{run.pk}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return held

    async def _drive(self, held: Held) -> None:
        try:
            await self._driver.drive(held)
        finally:
            if self._held.get(held.run.pk) is held:
                del self._held[held.run.pk]
            self._wake.set()

    # Letting go -----------------------------------------------------------------------------

    async def _drain(self) -> None:
        """Let runs finish, then hand back what is left; a run adopted meanwhile is included."""
        if self._tasks:
            logger.info("worker %s: draining %d runs", self.name, len(self._tasks))
        await self._wait_for_tasks(self._settings.drain_timeout)
        for held in list(self._held.values()):
            held.interrupt(Interrupt.RELEASE)
        await self._wait_for_tasks(RELEASE_PATIENCE)

    async def _wait_for_tasks(self, patience: float) -> None:
        try:
            async with asyncio.timeout(patience):
                while self._tasks:
                    await asyncio.wait(set(self._tasks))
        except TimeoutError:
            return

    def _announce(self, ended: Ended) -> None:
        if ended.published:
            self._publisher.show(ended.run.pk, ended.published)
        self._wake.set()


def _call(loop: asyncio.AbstractEventLoop, function: Callable[[T], object], argument: T) -> None:
    """Hand something from another thread to the loop; too late is no error."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(function, argument)


async def _wait(event: asyncio.Event, patience: float) -> None:
    try:
        async with asyncio.timeout(patience):
            await event.wait()
    except TimeoutError:
        return
