"""The orderer over everything that can happen to a handful of numbered events."""

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.orderer import Orderer


def feed(orderer: Orderer[str], seqs: list[int]) -> list[str]:
    return [out for seq in seqs for out in orderer.offer(seq, f"e{seq}")]


def names(start: int, stop: int) -> list[str]:
    return [f"e{seq}" for seq in range(start, stop)]


@pytest.mark.parametrize("count", range(7))
def test_every_permutation_comes_out_in_order(count: int):
    for order in itertools.permutations(range(count)):
        orderer: Orderer[str] = Orderer(0)
        assert feed(orderer, list(order)) == names(0, count)
        assert not orderer.gap


@pytest.mark.parametrize("seed", range(20))
def test_shuffles_with_repeats_come_out_once_from_every_resume_point(seed: int):
    rng = random.Random(seed)
    count = 60
    for start in range(count + 1):
        arriving = list(range(count)) + rng.choices(range(count), k=30)
        rng.shuffle(arriving)
        orderer: Orderer[str] = Orderer(start)
        assert feed(orderer, arriving) == names(start, count)
        assert orderer.next == count


def test_a_hole_holds_everything_above_it_and_fills_at_once():
    orderer: Orderer[str] = Orderer(0)
    assert feed(orderer, [0, 2, 3]) == ["e0"]
    assert (orderer.gap, orderer.held, orderer.next) == (True, 2, 1)
    assert feed(orderer, [1]) == ["e1", "e2", "e3"]
    assert (orderer.gap, orderer.held, orderer.next) == (False, 0, 4)


def test_what_was_delivered_or_is_held_is_dropped():
    orderer: Orderer[str] = Orderer(5)
    assert feed(orderer, [4, 0, 6, 6]) == []
    assert orderer.held == 1
    assert feed(orderer, [5, 5]) == ["e5", "e6"]


def test_skipping_forward_forgets_what_is_accounted_for():
    orderer: Orderer[str] = Orderer(0)
    feed(orderer, [2, 5])
    orderer.skip_to(4)
    assert (orderer.next, orderer.held) == (4, 1)
    assert feed(orderer, [4]) == ["e4", "e5"]
    orderer.skip_to(1)
    assert orderer.next == 6


@given(st.lists(st.integers(0, 12)), st.integers(0, 12))
def test_output_is_always_the_longest_stretch_from_the_start(arriving: list[int], start: int):
    orderer: Orderer[str] = Orderer(start)
    out = feed(orderer, arriving)
    reached = start
    while reached in arriving:
        reached += 1
    assert out == names(start, reached)
    assert orderer.held == len({seq for seq in arriving if seq > reached})
