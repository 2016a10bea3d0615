"""One attempt's end of a run's log: what is numbered, what waits, what it adds up to."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

from runs.errors import KodaError
from runs.events import Event, Fold, Said
from runs.metrics import Pace
from runs.states import Status
from runs.writes import Ending


@dataclass(frozen=True, slots=True)
class Terminal:
    """The end of a run, waiting to be written behind everything that came before it."""

    event: Event
    to: Status
    ending: Ending
    consumed: int | None
    written: asyncio.Future[None]


@dataclass(eq=False, slots=True)
class RunLog:
    """One attempt's end of a run's log."""

    run_id: UUID
    attempt: int
    worker: str
    seq: int
    """The number of the next event to be written."""
    streaming: bool
    on_refused: Callable[[KodaError], None]
    waiting: deque[Said] = field(default_factory=deque)
    terminal: Terminal | None = None
    stored: Fold = field(default_factory=Fold)
    """What the stored events add up to."""
    refused: KodaError | None = None
    pace: Pace = field(default_factory=Pace)
    in_flight: bool = False
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    """Set while nothing of this run waits or is being written."""

    def __post_init__(self) -> None:
        self.update_settled()

    def update_settled(self) -> None:
        if self.waiting or self.in_flight:
            self.settled.clear()
        else:
            self.settled.set()
