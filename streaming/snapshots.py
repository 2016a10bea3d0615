"""What a client gets instead of a long replay: the state so far, folded once for all of them."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextvars import Context
from dataclasses import dataclass, field
from uuid import UUID

from runs.events import StoredEvent
from runs.projection import Projection
from streaming.stretch import Encode

MOST_RUNS, MOST_SIZE = 500, 8 * 1024 * 1024
"""How many runs, and characters of their states, are kept of those asked for most recently."""

Extend = Callable[[Projection], Awaitable[StoredEvent | None]]
"""Fold what the log has beyond a projection. The snapshot; None if there cannot be one."""


@dataclass(eq=False, slots=True)
class Snapshot:
    """The event, and its frame in each protocol that somebody asked for."""

    run_id: UUID
    event: StoredEvent
    _frames: dict[Encode, bytes] = field(default_factory=dict)

    def frame(self, encode: Encode) -> bytes:
        if encode not in self._frames:
            self._frames[encode] = encode(self.run_id, self.event)
        return self._frames[encode]


@dataclass(eq=False, slots=True)
class Folded:
    """A log, as far as it was folded; without snapshot, one that there cannot be any of."""

    projection: Projection
    snapshot: Snapshot | None = None


class Snapshots:
    """Those of one process, on one event loop."""

    def __init__(self, *, cap: int, extend: Extend) -> None:
        self._cap = cap
        self._extend = extend
        self._kept: OrderedDict[UUID, Folded] = OrderedDict()
        self._folding: dict[UUID, asyncio.Task[Folded]] = {}

    async def instead_of(self, run_id: UUID, start: int, end: int) -> Snapshot | None:
        """What to send instead of the events from `start` to before `end`, or to beyond that.

        None where these are no more than the cap, or where there cannot be a snapshot. One that
        leaves no more than the cap to replay is recent enough, so that a log that grows is not
        folded anew for everybody.
        """
        if end - start <= self._cap:
            return None
        folded = self._kept.get(run_id)
        for _ in range(2):  # what was being folded already may end too early
            if folded is not None and self._serves(folded, end):
                break
            folded = await self._fold(run_id)
        if folded is None or not self._serves(folded, end):
            return None
        self._keep(run_id, folded)
        return folded.snapshot

    def _serves(self, folded: Folded, end: int) -> bool:
        snapshot = folded.snapshot
        return snapshot is None or end - snapshot.event.seq - 1 <= self._cap

    async def _fold(self, run_id: UUID) -> Folded:
        """Fold the log to its end. Whoever asks meanwhile waits for the same."""
        task = self._folding.get(run_id)
        if task is None:
            task = asyncio.get_running_loop().create_task(
                self._fold_on(run_id), name=f"koda-snapshot-{run_id}", context=Context()
            )
            self._folding[run_id] = task
            task.add_done_callback(lambda _: self._folding.pop(run_id))
        return await asyncio.shield(task)

    async def _fold_on(self, run_id: UUID) -> Folded:
        """Go on where the last fold ended."""
        kept = self._kept.get(run_id)
        projection = kept.projection if kept else Projection(str(run_id))
        if event := await self._extend(projection):
            folded = Folded(projection, Snapshot(run_id, event))
        else:
            folded = Folded(Projection(str(run_id)))
        self._keep(run_id, folded)
        return folded

    def _keep(self, run_id: UUID, folded: Folded) -> None:
        """As the most recent one; the least recent ones make room."""
        self._kept[run_id] = folded
        self._kept.move_to_end(run_id)
        size = sum(kept.projection.size for kept in self._kept.values())
        while len(self._kept) > 1 and (len(self._kept) > MOST_RUNS or size > MOST_SIZE):
            _, dropped = self._kept.popitem(last=False)
            size -= dropped.projection.size
