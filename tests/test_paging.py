"""How much of a log is read at once."""

from __future__ import annotations

from runs.events import StoredEvent
from runs.paging import FIRST, MOST, PAGE_SIZE, Page, Paging, cut


def words(count: int, size: int) -> list[StoredEvent]:
    return [StoredEvent(seq, "delta", {"text": "x" * size}) for seq in range(count)]


def test_a_page_ends_where_it_is_large_enough_and_has_one_event_at_least():
    assert cut([]) == Page([], 0)
    small = words(100, 10)
    assert cut(small) == Page(small, 1000)
    huge = words(3, 2 * PAGE_SIZE)
    assert cut(huge) == Page(huge[:1], 2 * PAGE_SIZE)
    quarters = words(9, PAGE_SIZE // 4)
    assert cut(quarters) == Page(quarters[:4], PAGE_SIZE)


def test_pages_of_small_events_grow_and_a_short_one_is_the_last():
    reading = Paging()
    limits = []
    for _ in range(7):
        limits.append(reading.limit)
        assert reading.more(cut(words(reading.limit, 1)))
    assert limits == [FIRST, 128, 256, 512, MOST, MOST, MOST]
    assert not reading.more(cut(words(reading.limit - 1, 1)))


def test_after_a_page_that_was_cut_less_is_asked_for_and_there_may_be_more():
    reading = Paging()
    assert reading.more(cut(words(FIRST, PAGE_SIZE // 10)))
    assert reading.limit == 11
    assert reading.more(cut(words(2, PAGE_SIZE)))
    assert reading.limit == 1
    assert not reading.more(cut([]))
