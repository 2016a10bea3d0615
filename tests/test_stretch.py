"""What arrives together is encoded once, and sent as it is where nothing is missing."""

from __future__ import annotations

from itertools import permutations
from uuid import uuid4

from runs.events import StoredEvent
from streaming.orderer import Orderer
from streaming.protocols import agent, koda
from streaming.stretch import Stretch, stretches

RUN = uuid4()


def words(*numbers: int) -> list[StoredEvent]:
    return [StoredEvent(number, "delta", {"text": f"w{number} "}) for number in numbers]


def cut(*numbers: int) -> list[list[int]]:
    return [[event.seq for event in one.events] for one in stretches(RUN, words(*numbers))]


def test_events_are_cut_where_a_number_does_not_follow():
    assert cut(3) == [[3]]
    assert cut(3, 4, 5) == [[3, 4, 5]]
    assert cut(3, 4, 6, 7, 2) == [[3, 4], [6, 7], [2]]
    assert cut(3, 3, 4) == [[3], [3, 4]]


def test_everybody_is_given_the_same_bytes_in_each_protocol():
    stretch = Stretch(RUN, words(0, 1))
    native = stretch.encoded(koda.encode)
    assert native == b"".join(koda.encode(RUN, event) for event in stretch.events)
    assert stretch.encoded(koda.encode) is native
    assert stretch.encoded(agent.encode) == b"".join(agent.encode(RUN, e) for e in stretch.events)


def test_only_what_comes_next_with_nothing_held_is_passed_over():
    orderer: Orderer[StoredEvent] = Orderer(2)
    assert not orderer.pass_over(1, 4), "1 was delivered already"
    assert not orderer.pass_over(3, 4), "2 is missing"
    [ahead] = words(6)
    orderer.offer(6, ahead)
    assert not orderer.pass_over(2, 4), "6 waits, and might be next then"
    assert [e.seq for n in (2, 3, 4, 5) for e in orderer.offer(n, words(n)[0])] == [2, 3, 4, 5, 6]
    assert orderer.pass_over(7, 9)
    assert orderer.next == 9


def test_any_order_of_stretches_comes_out_as_one_line():
    pieces = [Stretch(RUN, words(*numbers)) for numbers in ([0, 1], [2], [3, 4, 5], [1, 2], [6])]
    for order in permutations(pieces):
        orderer: Orderer[StoredEvent] = Orderer(0)
        out: list[int] = []
        for piece in order:
            if orderer.pass_over(piece.start, piece.end):
                out += [event.seq for event in piece.events]
            else:
                out += [e.seq for event in piece.events for e in orderer.offer(event.seq, event)]
        assert out == [0, 1, 2, 3, 4, 5, 6]
