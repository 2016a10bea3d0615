"""One connection's end of the hub: what arrived, within bounds.."""

from __future__ import annotations

import asyncio
from collections import deque

from streaming.stretch import Stretch

MAX_EVENTS = 1000
MAX_SIZE = 1024 * 1024
"""What may wait for one slow client; beyond that it reads the log when it catches up."""


class Watcher:
    """What has arrived for one connection and was not taken yet."""

    def __init__(self) -> None:
        self._arrived: deque[Stretch] = deque()
        self._count = 0
        self._size = 0
        self.wake = asyncio.Event()
        """Set whenever there may be something to do."""
        self.overflowed = False
        """Events were dropped here: the log has to be read."""
        self.known_next = 0
        """The log reaches this far, as somebody has found out."""
        self.gone = False
        """The run was deleted."""

    def push(self, stretch: Stretch) -> None:
        """Take events that arrived."""
        self._arrived.append(stretch)
        self._count += len(stretch.events)
        self._size += stretch.size
        if self._count > MAX_EVENTS or self._size > MAX_SIZE:
            self._clear()
            self.overflowed = True
        self.wake.set()

    def take(self) -> list[Stretch]:
        """Everything that arrived since the last call, in whatever order it came."""
        taken = list(self._arrived)
        self._clear()
        return taken

    def look(self, known_next: int) -> None:
        """The log has events up to `known_next` - 1, whatever has arrived."""
        self.known_next = max(self.known_next, known_next)
        self.wake.set()

    def lose(self) -> None:
        """The run is no more."""
        self.gone = True
        self.wake.set()

    def _clear(self) -> None:
        self._arrived.clear()
        self._count = self._size = 0
