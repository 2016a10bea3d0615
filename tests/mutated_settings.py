"""Koda's settings with one piece of the machinery replaced by the naive version of it.

The environment variable MUTATION names the piece. The pieces are pure modules, so they can be
replaced before Django loads the code that uses them; whoever inherits the environment inherits
the fault.
"""

import os

from runs import merging, states
from streaming import orderer, wire


def anything_goes() -> None:
    """Every status may follow every other one."""
    states.TRANSITIONS = dict.fromkeys(states.Status, frozenset(states.Status))


class Impatient(orderer.Orderer):
    """Delivers whatever is new as it comes; notices holes, but does not wait for them."""

    def __init__(self, start):
        super().__init__(start)
        self._delivered = set()

    def offer(self, seq, event):
        if seq < self.next or seq in self._delivered:
            return []
        self._delivered.add(seq)
        while self.next in self._delivered:
            self._delivered.remove(self.next)
            self.next += 1
        return [event]

    def skip_to(self, seq):
        self.next = max(self.next, seq)
        self._delivered = {number for number in self._delivered if number >= seq}

    @property
    def gap(self):
        return bool(self._delivered)

    @property
    def held(self):
        return len(self._delivered)


def in_arrival_order() -> None:
    """Events go out as the channel layer brings them."""
    orderer.Orderer = Impatient


def from_the_last_one() -> None:
    """A client that comes back gets its last event once more."""
    wire.resume_from = lambda last_id: last_id or 0


def never_together() -> None:
    """Every message starts a run of its own."""
    merging.JOINABLE = frozenset()


MUTATIONS = {
    "transitions": anything_goes,
    "orderer": in_arrival_order,
    "resume": from_the_last_one,
    "merge": never_together,
}

MUTATIONS[os.environ["MUTATION"]]()

from koda.settings import *  # noqa: E402, F403
