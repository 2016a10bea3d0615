"""How much of a log to read at once. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from runs.events import StoredEvent, size_of

FIRST, LEAST, MOST = 64, 8, 512
"""Events that one read brings: few at first, more while they are small."""

PAGE_SIZE = 1024 * 1024
"""Characters that a read should bring at most, as far as the last one tells."""


class Paging:
    """The size of the next page: it is held in memory as a whole."""

    def __init__(self) -> None:
        self.limit = FIRST

    def full(self, page: Sequence[StoredEvent]) -> bool:
        """Whether there may be more behind this page, which was read with the limit as it is."""
        return len(page) >= self.limit

    def adapt(self, page: Sequence[StoredEvent]) -> None:
        """Read less at once where events are big, more where they are small."""
        size = sum(size_of(event.data) for event in page)
        if size > PAGE_SIZE:
            self.limit = max(LEAST, self.limit // 4)
        elif size < PAGE_SIZE // 4:
            self.limit = min(MOST, self.limit * 2)
