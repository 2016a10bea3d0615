"""How much of a log to read at once. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from runs.events import StoredEvent, size_of

FIRST, MOST = 64, 1024
"""Events that one read brings: few at first, more while they are small."""

PAGE_SIZE = 256 * 1024
"""Characters beyond which a page ends: whoever does not read on keeps it in memory."""


@dataclass(frozen=True, slots=True)
class Page:
    """A stretch of a log, and roughly how many characters it has."""

    events: list[StoredEvent]
    size: int

    def full(self, asked: int) -> bool:
        """Whether it is as much as one read brings of `asked` events: there may be more behind."""
        return self.size >= PAGE_SIZE or len(self.events) >= asked


def cut(rows: list[StoredEvent]) -> Page:
    """The first of them, as many as make a page; at least one, if there is one."""
    size = 0
    for count, event in enumerate(rows, 1):
        size += size_of(event.data)
        if size >= PAGE_SIZE:
            return Page(rows[:count], size)
    return Page(rows, size)


class Paging:
    """How many events to ask for next."""

    def __init__(self) -> None:
        self.limit = FIRST

    def more(self, page: Page) -> bool:
        """Whether there may be more behind this page. Adapts the limit by what came with it."""
        asked, came = self.limit, len(page.events)
        if page.size >= PAGE_SIZE:
            self.limit = came
        elif page.size < PAGE_SIZE // 4:
            self.limit = min(MOST, asked * 2)
        return page.full(asked)
