"""One task per process listens to the channel layer and hands what it hears to local watchers.

The hub is the only one who joins and leaves groups. Its receiving task is never cancelled for a
time-out: the layer takes a cancelled `receive` for a consumer that went away.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from contextvars import Context
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

from runs.events import StoredEvent
from streaming import groups, metrics
from streaming.replay import ReadProgress
from streaming.stretch import stretches
from streaming.watcher import Watcher

logger = logging.getLogger(__name__)

PROBE_INTERVAL = 0.02
"""Seconds between two tests of a new subscription."""

CONFIRM_PATIENCE = 2.0
"""Seconds to wait for a subscription before going on without it (and trying further)."""

LINGER = 1.0
"""Seconds for which a run's group is not left yet: who lost a connection is back by then."""

SETTLE = 0.25
"""Seconds that a committed event may take through the layer before it counts as lost."""


@dataclass(eq=False)
class Watched:
    """A run with watchers in this process."""

    run_id: UUID
    watchers: set[Watcher] = field(default_factory=set)
    confirmed: asyncio.Event = field(default_factory=asyncio.Event)
    seen_next: int = 0
    """One more than the greatest number that arrived here."""
    joining: asyncio.Task[None] | None = None
    leaving: asyncio.TimerHandle | None = None
    """Set while nobody watches."""


class Hub:
    """The local end of the channel layer, on one event loop."""

    def __init__(self, *, progress: ReadProgress, sweep_interval: float) -> None:
        self._progress = progress
        self._sweep_interval = sweep_interval
        self._watched: dict[UUID, Watched] = {}
        self._channel: str | None = None
        self._listening = asyncio.Event()
        self._membership = asyncio.Lock()
        self._nonce = uuid4().hex
        self._tasks: set[asyncio.Task[None]] = set()
        self.draining = False
        """Streams say goodbye and end."""

    def start(self) -> None:
        groups.at_home_here()
        self._task(self._receive(), "koda-hub-receive")
        self._task(self._sweep_forever(), "koda-hub-sweep")
        self._task(self._renew_forever(), "koda-hub-renew")

    def drain(self) -> None:
        """Ask every stream to end; they may come back to another process."""
        self.draining = True
        for watched in self._watched.values():
            for watcher in watched.watchers:
                watcher.wake.set()

    async def stop(self) -> None:
        """End the hub's tasks."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def watchers(self) -> int:
        """Connections that watch a run here."""
        return sum(len(watched.watchers) for watched in self._watched.values())

    @asynccontextmanager
    async def watch(self, run_id: UUID) -> AsyncIterator[Watcher]:
        """Watch a run: what is published from now on arrives, as far as anything is sure.

        Returns once the subscription is confirmed, or after CONFIRM_PATIENCE without it.
        """
        watched = self._watched.get(run_id)
        if watched is None:
            watched = self._watched[run_id] = Watched(run_id)
            watched.joining = self._task(self._join(watched), f"koda-hub-join-{run_id}")
        if watched.leaving is not None:
            watched.leaving.cancel()
            watched.leaving = None
        watcher = Watcher()
        watched.watchers.add(watcher)
        metrics.WATCHERS.inc()
        try:
            await self._until_confirmed(watched)
            yield watcher
        finally:
            metrics.WATCHERS.dec()
            watched.watchers.discard(watcher)
            if not watched.watchers:
                loop = asyncio.get_running_loop()
                watched.leaving = loop.call_later(LINGER, self._forget, watched)

    async def _until_confirmed(self, watched: Watched) -> None:
        if watched.confirmed.is_set():
            return
        try:
            async with asyncio.timeout(CONFIRM_PATIENCE):
                await watched.confirmed.wait()
        except TimeoutError:
            logger.warning("run %s: subscription not confirmed yet, going on", watched.run_id)

    # Membership -----------------------------------------------------------------------------

    def _forget(self, watched: Watched) -> None:
        """Nobody came back."""
        del self._watched[watched.run_id]
        if watched.joining is not None:
            watched.joining.cancel()
        self._task(self._leave(watched.run_id), f"koda-hub-leave-{watched.run_id}")

    async def _join(self, watched: Watched) -> None:
        """Subscribe, and send probes until one comes back: only then is nothing missed."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        probe = {"type": "koda.probe", "run": str(watched.run_id), "nonce": self._nonce}
        while not watched.confirmed.is_set():
            late = loop.time() - began > CONFIRM_PATIENCE
            try:
                await self._add(watched.run_id)
                await groups.send([(groups.run_group(watched.run_id), probe)])
            except Exception as error:  # noqa: BLE001 - a layer that is down comes back
                logger.warning("run %s: not subscribed, trying again: %s", watched.run_id, error)
                late = True
            try:
                async with asyncio.timeout(0.5 if late else PROBE_INTERVAL):
                    await watched.confirmed.wait()
            except TimeoutError:
                continue
        if loop.time() - began > CONFIRM_PATIENCE:
            for watcher in watched.watchers:
                watcher.overflowed = True
                watcher.wake.set()

    async def _add(self, run_id: UUID) -> None:
        await self._listening.wait()
        async with self._membership:
            if run_id in self._watched:
                await groups.layer().group_add(groups.run_group(run_id), self._channel)

    async def _renew_forever(self) -> None:
        """Join again what should be joined: the layer forgets members that it thinks are dead.

        A task of its own, because a layer that is down or frozen must not keep the log unread.
        """
        while True:
            await asyncio.sleep(self._sweep_interval)
            for run_id in list(self._watched):
                try:
                    await self._add(run_id)
                except Exception as error:  # noqa: BLE001 - a layer that is down comes back
                    logger.warning("groups not joined again: %s", error)
                    break

    async def _leave(self, run_id: UUID) -> None:
        async with self._membership:
            if run_id in self._watched or self._channel is None:
                return
            try:
                await groups.layer().group_discard(groups.run_group(run_id), self._channel)
            except Exception as error:  # noqa: BLE001 - a layer that is down comes back
                logger.warning("run %s: group not left: %s", run_id, error)

    # Receiving ------------------------------------------------------------------------------

    async def _receive(self) -> None:
        while True:
            try:
                if self._channel is None:
                    self._channel = await groups.layer().new_channel("koda.gateway")
                    self._listening.set()
                message = await groups.layer().receive(self._channel)
            except Exception as error:  # noqa: BLE001 - a layer that is down comes back
                logger.warning("channel layer not heard, trying again: %s", error)
                await asyncio.sleep(0.5)
                continue
            try:
                self._dispatch(message)
            except Exception:
                logger.exception("message of an unknown kind ignored")

    def _dispatch(self, message: dict[str, Any]) -> None:
        watched = self._watched.get(UUID(message["run"]))
        if watched is None:
            return
        match message["type"]:
            case "koda.events":
                self._arrived(watched, message)
            case "koda.probe":
                if message["nonce"] == self._nonce:
                    watched.confirmed.set()
            case "koda.gone":
                for watcher in watched.watchers:
                    watcher.lose()

    def _arrived(self, watched: Watched, message: dict[str, Any]) -> None:
        watched.seen_next = max(watched.seen_next, message["next"])
        if "events" not in message:
            for watcher in watched.watchers:
                watcher.look(message["next"])
            return
        events = [StoredEvent(*event) for event in message["events"]]
        for stretch in stretches(watched.run_id, events):
            for watcher in watched.watchers:
                watcher.push(stretch)

    # Sweeping -------------------------------------------------------------------------------

    async def _sweep_forever(self) -> None:
        while True:
            await asyncio.sleep(self._sweep_interval)
            try:
                await self.sweep()
            except Exception as error:  # noqa: BLE001 - a layer that is down comes back
                logger.warning("watched runs not looked after: %s", error)

    async def sweep(self) -> None:
        """Find what the layer lost, the last message of a run included: one query for all."""
        asked = list(self._watched.values())
        if not asked:
            return
        progress = await self._progress([watched.run_id for watched in asked])
        await asyncio.sleep(SETTLE)
        for watched in asked:
            found = progress.get(watched.run_id)
            if found is None:
                for watcher in watched.watchers:
                    watcher.lose()
            elif found.next_seq > watched.seen_next:
                watched.seen_next = found.next_seq
                for watcher in watched.watchers:
                    watcher.look(found.next_seq)

    def _task(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """A task of the hub's own, without the context of the request that caused it."""
        task = asyncio.get_running_loop().create_task(work, name=name, context=Context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
