"""What the guarded writes take and give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from runs.events import Data, Event, EventType, StoredEvent
from runs.states import Status

if TYPE_CHECKING:
    from runs.models import Run


@dataclass(frozen=True, slots=True)
class Ending:
    """What a run leaves behind, stored with its terminal status."""

    output: str
    finish_reason: str
    error: Data | None = None
    usage: Data | None = None


@dataclass(frozen=True, slots=True)
class Append:
    """What a worker adds to one run's log, and what it believes the run to be."""

    run_id: UUID
    attempt: int
    worker: str
    seq: int
    """The number of the first event: what `next_seq` must be."""
    events: Sequence[Event]
    to: Status | None = None
    consumed: int | None = None
    """Refuse unless the run has just this many inputs; None does not ask."""
    ending: Ending | None = None

    @property
    def has_text(self) -> bool:
        return any(event.type == EventType.DELTA for event in self.events)


@dataclass(frozen=True, slots=True)
class Claimed:
    """A run that this worker now owns, and the events that say so."""

    run: Run
    published: list[StoredEvent]
    from_the_dead: bool = False
    """Its last worker was lost."""

    def last_chance(self, max_attempts: int) -> bool:
        """Whether its workers died until this is its last try."""
        return self.from_the_dead and self.run.tries >= max_attempts


@dataclass(frozen=True, slots=True)
class Ended:
    """The run after an attempt to end it; no events means that somebody else was first."""

    run: Run
    published: list[StoredEvent]
