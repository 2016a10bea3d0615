"""How much of a log to read at once. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from runs.events import StoredEvent, size_of

FIRST, LEAST, MOST = 64, 4, 512
"""Events that one read brings: few at first, more while they are small."""

PAGE_SIZE = 256 * 1024
"""Characters beyond which a page ends: whoever does not read on keeps it in memory."""


def cut(rows: list[StoredEvent]) -> list[StoredEvent]:
    """The first of them, as many as make a page; at least one, if there is one."""
    size = 0
    for count, event in enumerate(rows, 1):
        size += size_of(event.data)
        if size >= PAGE_SIZE:
            return rows[:count]
    return rows


class Paging:
    """How many events to ask for next."""

    def __init__(self) -> None:
        self.limit = FIRST

    def more(self, page: Sequence[StoredEvent]) -> bool:
        """Whether there may be more behind this page. Adapts the limit by what came with it."""
        asked = self.limit
        size = sum(size_of(event.data) for event in page)
        if size >= PAGE_SIZE:
            self.limit = max(LEAST, min(MOST, len(page)))
        elif size < PAGE_SIZE // 4:
            self.limit = min(MOST, self.limit * 2)
        return size >= PAGE_SIZE or len(page) >= asked
