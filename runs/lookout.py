"""What happens to the held runs meanwhile: corrections, cancels, losses."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from runs import marks
from runs.held import Held, Interrupt
from runs.models import Run
from runs.states import ACTIVE
from runs.threads import DatabaseThreads, passes

logger = logging.getLogger(__name__)

WATCH = 1.0
"""Seconds between looks at the held runs: what a silent agent's cancel or correction costs."""

GLANCE = 0.04
"""Seconds between looks at the rerun marks while text flows."""

TICK, ASLEEP_AFTER = 0.2, 1.5
"""Seconds between signs of life of the event loop, and after which it counts as blocked."""


@dataclass(frozen=True, slots=True)
class Observed:
    """What the database says of a held run."""

    attempt: int
    status: str
    input_count: int


def observe(run_ids: list[UUID]) -> dict[UUID, Observed]:
    """These runs as they are now; one that was deleted is missing."""
    rows = Run.objects.filter(pk__in=run_ids).values_list("pk", "attempt", "status", "input_count")
    return {pk: Observed(attempt, status, inputs) for pk, attempt, status, inputs in rows}


class Lookout:
    """Interrupts held runs that have lost their ground."""

    def __init__(self, held: Mapping[UUID, Held], reads: DatabaseThreads) -> None:
        self._held = held
        self._reads = reads
        self._ticked = time.monotonic()

    @property
    def awake(self) -> bool:
        """Whether the event loop has turned lately. Asked from other threads."""
        return time.monotonic() - self._ticked < ASLEEP_AFTER

    async def tick(self) -> None:
        """Show that the event loop turns, for ever."""
        while True:
            self._ticked = time.monotonic()
            await asyncio.sleep(TICK)

    async def watch(self) -> None:
        """Look once a second, for ever: a silent agent writes nothing that could be refused."""
        while True:
            await asyncio.sleep(WATCH)
            held = dict(self._held)
            if not held:
                continue
            try:
                seen = await self._reads(observe, list(held))
            except Exception as error:
                if not passes(error):
                    raise
                logger.warning("held runs not looked at: %s", error)
                continue
            for run_id, mine in held.items():
                _compare(mine, seen.get(run_id))

    async def glance(self) -> None:
        """Look at the rerun marks between fragments, for ever and for all runs at once."""
        looked: dict[UUID, int] = {}
        while True:
            await asyncio.sleep(GLANCE)
            flowing = {id: held.log.seq for id, held in self._held.items()}
            moved = [id for id, seq in flowing.items() if looked.get(id) != seq]
            looked = flowing
            if not moved:
                continue
            found = await self._reads(marks.read_marks, moved)
            for run_id, count in found.items():
                if held := self._held.get(run_id):
                    held.hear_of_inputs(count)


def _compare(held: Held, seen: Observed | None) -> None:
    if seen is None or seen.attempt != held.run.attempt or seen.status not in ACTIVE:
        held.interrupt(Interrupt.LOST)
    else:
        held.hear_of_inputs(seen.input_count)
