"""Pages of logs that were read a moment ago, for all who come back at once."""

from __future__ import annotations

import asyncio
from uuid import UUID

from streaming.stretch import Reading

KEPT = 2.0
"""Seconds: long enough for a crowd of clients, short enough to hold nothing that was deleted."""

MOST_SIZE = 8 * 1024 * 1024
"""Characters of text and tool data that are kept at most; their frames are about as much again."""

Key = tuple[UUID, int, int]
"""A run, the number to read from, and the most events to bring."""


class Readings:
    """Those of one process, on one event loop. A page that may still grow is not kept."""

    def __init__(self) -> None:
        self._kept: dict[Key, Reading] = {}
        self._size = 0

    def get(self, key: Key) -> Reading | None:
        """The reading, if there was one a moment ago."""
        return self._kept.get(key)

    def keep(self, key: Key, reading: Reading) -> None:
        """Have it for the next ones, unless others that are kept leave no room for it."""
        _, _, asked = key
        page = reading.page
        final = page.full(asked) or (page.events and page.events[-1].terminal)
        if not final or key in self._kept or self._size + page.size > MOST_SIZE:
            return
        self._kept[key] = reading
        self._size += page.size
        asyncio.get_running_loop().call_later(KEPT, self._drop, key)

    def _drop(self, key: Key) -> None:
        self._size -= self._kept.pop(key).page.size
