"""Reading the log: the only place of this package that asks the database."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from contextvars import Context
from dataclasses import dataclass
from uuid import UUID

from runs.events import StoredEvent
from runs.models import Message, Run
from runs.projection import Projection
from runs.reducer import ReducerError
from runs.threads import DatabaseThreads
from streaming.readings import Key, Readings
from streaming.stretch import Reading

logger = logging.getLogger(__name__)

THREADS = 2
"""However many clients reconnect at once, so many reads are under way."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run has got."""

    next_seq: int
    status: str


ReadLog = Callable[[UUID, int, int, bool], Awaitable[Reading]]
"""See `Replay.log`."""
ReadProgress = Callable[[Collection[UUID]], Awaitable[dict[UUID, Progress]]]


class Replay:
    """Reads on a few threads of its own, which give their connections back after each use."""

    def __init__(self) -> None:
        self._threads = DatabaseThreads("koda-replay", threads=THREADS, keep=False)
        self._folds = DatabaseThreads("koda-fold", threads=1, keep=False)
        self._asked: dict[Key, asyncio.Task[Reading]] = {}
        """Readings that no thread has begun yet."""
        self._kept = Readings()

    async def log(self, run_id: UUID, start: int, limit: int, known: bool = False) -> Reading:
        """A page of the run from number `start` on, of at most `limit` events.

        `known` tells that the log goes on there; then what was read a moment ago is good enough.

        Whoever asks for the same joins a reading that has not begun. One that has begun may lack
        what is known to be there by now; only what nothing can be added to is kept for a moment.
        """
        key = (run_id, start, limit)
        if known and (kept := self._kept.get(key)):
            await asyncio.sleep(0)  # so that a long log does not keep the others waiting
            return kept
        asked = self._asked.get(key)
        if asked is None:
            asked = asyncio.get_running_loop().create_task(
                self._read(key), name=f"koda-read-{run_id}", context=Context()
            )
            asked.add_done_callback(_nobody_may_be_waiting)
            self._asked[key] = asked
        return await asyncio.shield(asked)

    async def _read(self, key: Key) -> Reading:
        reading = await self._threads(self._begin, key)
        self._kept.keep(key, reading)
        return reading

    def _begin(self, key: Key) -> Reading:
        del self._asked[key]
        run_id, start, limit = key
        return Reading.of(run_id, Message.objects.all().page(run_id, start=start, limit=limit))

    async def progress(self, run_ids: Collection[UUID]) -> dict[UUID, Progress]:
        """Where these runs are, in one query; one that was deleted is missing."""
        return await self._threads(_progress, list(run_ids))

    async def extend(self, projection: Projection) -> StoredEvent | None:
        """See `snapshots.Extend`. On a thread apart: the other reads do not wait for long logs."""
        return await self._folds(_extend, projection)

    def close(self) -> None:
        self._threads.close()
        self._folds.close()


def _nobody_may_be_waiting(asked: asyncio.Task[Reading]) -> None:
    """All clients may have left; then an error is of no interest."""
    if not asked.cancelled():
        asked.exception()


def _extend(projection: Projection) -> StoredEvent | None:
    run_id = UUID(projection.run_id)
    try:
        for page in Message.objects.all().pages(run_id, start=projection.next_seq):
            projection.extend(page)
            if projection.too_large:
                return None
    except ReducerError as error:
        logger.error("run %s: no snapshot, its log does not add up: %s", run_id, error)  # noqa: TRY400
        return None
    return projection.snapshot() if projection.next_seq else None


def _progress(run_ids: list[UUID]) -> dict[UUID, Progress]:
    rows = Run.objects.filter(pk__in=run_ids).values_list("pk", "next_seq", "status")
    return {run_id: Progress(next_seq, status) for run_id, next_seq, status in rows}
