"""Publishing as a task of its own: bounded, late at worst, never an error of the run."""

import asyncio
import logging
from collections.abc import Sequence
from uuid import UUID

from runs import metrics
from runs.events import StoredEvent
from runs.ports import Publish

logger = logging.getLogger(__name__)

MAX_QUEUED = 1000
"""Stretches of stored events that may wait to be published; further ones are dropped."""

TIMEOUT = 2.0
"""Seconds that one publish may take."""


class Publisher:
    """Hands stored events to the channel layer. What it drops, watchers read from the log."""

    def __init__(self, publish: Publish) -> None:
        self._publish = publish
        self._queue: asyncio.Queue[tuple[UUID, Sequence[StoredEvent]]] = asyncio.Queue(MAX_QUEUED)
        self.dropped = 0
        """Events that were not published, since the start."""

    def show(self, run_id: UUID, stored: Sequence[StoredEvent]) -> None:
        """Publish soon; returns at once."""
        try:
            self._queue.put_nowait((run_id, stored))
        except asyncio.QueueFull:
            self._drop(len(stored))

    async def run(self) -> None:
        """Publish until cancelled."""
        while True:
            run_id, stored = await self._queue.get()
            batch = {run_id: list(stored)}
            taken = 1
            while not self._queue.empty():
                run_id, stored = self._queue.get_nowait()
                batch.setdefault(run_id, []).extend(stored)
                taken += 1
            try:
                async with asyncio.timeout(TIMEOUT):
                    await self._publish(batch)
            except Exception as error:  # noqa: BLE001 - whatever it is, the log has the events
                lost = sum(map(len, batch.values()))
                self._drop(lost)
                logger.warning("%d events not published: %r", lost, error)
            for _ in range(taken):
                self._queue.task_done()

    def _drop(self, events: int) -> None:
        self.dropped += events
        metrics.PUBLISH_DROPPED.inc(events)

    async def drain(self, patience: float) -> None:
        """Give what is queued up to `patience` seconds to leave."""
        try:
            async with asyncio.timeout(patience):
                await self._queue.join()
        except TimeoutError:
            logger.warning("not everything could be published before the end")
