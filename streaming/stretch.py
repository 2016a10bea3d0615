"""Events that came together and follow one another, encoded once for all who watch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from runs.events import StoredEvent, size_of
from runs.paging import Page

Encode = Callable[[UUID, StoredEvent], bytes]


class Stretch:
    """A part of a run's log without holes."""

    __slots__ = ("_encoded", "_size", "end", "events", "run_id", "start", "terminal")

    def __init__(self, run_id: UUID, events: Sequence[StoredEvent]) -> None:
        self.run_id = run_id
        self.events = events
        self.start = events[0].seq
        self.end = events[-1].seq + 1
        """One more than the last number."""
        self.terminal = events[-1].terminal
        self._encoded: dict[Encode, bytes] = {}
        self._size = -1

    @property
    def size(self) -> int:
        """Characters, roughly."""
        if self._size < 0:
            self._size = sum(size_of(event.data) for event in self.events)
        return self._size

    def encoded(self, encode: Encode) -> bytes:
        """All frames. The same bytes object for everybody who asks."""
        if encode not in self._encoded:
            self._encoded[encode] = b"".join(encode(self.run_id, event) for event in self.events)
        return self._encoded[encode]


@dataclass(frozen=True, slots=True)
class Reading:
    """A page of a log, for everybody who asked for it while it was not read yet."""

    page: Page
    parts: Sequence[Stretch]

    @classmethod
    def of(cls, run_id: UUID, page: Page) -> Reading:
        return cls(page, list(stretches(run_id, page.events)))


def stretches(run_id: UUID, events: Sequence[StoredEvent]) -> Iterator[Stretch]:
    """`events`, in the order given, cut where a number does not follow the one before it."""
    begun = 0
    for place in range(1, len(events) + 1):
        if place == len(events) or events[place].seq != events[place - 1].seq + 1:
            yield Stretch(run_id, events[begun:place])
            begun = place
