"""Reading the log: the only place of this package that asks the database."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from uuid import UUID

from runs.events import StoredEvent
from runs.models import Message, Run
from runs.threads import DatabaseThreads

THREADS = 2
"""However many clients reconnect at once, so many reads are under way."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run has got."""

    next_seq: int
    status: str


ReadLog = Callable[[UUID, int, int], Awaitable[list[StoredEvent]]]
ReadProgress = Callable[[Collection[UUID]], Awaitable[dict[UUID, Progress]]]


class Replay:
    """Reads on a few threads of its own, which give their connections back after each use."""

    def __init__(self) -> None:
        self._threads = DatabaseThreads("koda-replay", threads=THREADS, keep=False)

    async def log(self, run_id: UUID, start: int, limit: int) -> list[StoredEvent]:
        """At most `limit` events of the run from number `start` on, in order."""
        return await self._threads(Message.objects.all().log, run_id, start=start, limit=limit)

    async def progress(self, run_ids: Collection[UUID]) -> dict[UUID, Progress]:
        """Where these runs are, in one query; one that was deleted is missing."""
        return await self._threads(_progress, list(run_ids))

    def close(self) -> None:
        self._threads.close()


def _progress(run_ids: list[UUID]) -> dict[UUID, Progress]:
    rows = Run.objects.filter(pk__in=run_ids).values_list("pk", "next_seq", "status")
    return {run_id: Progress(next_seq, status) for run_id, next_seq, status in rows}
