"""Puts what arrives out of order, twice or with holes into one line. Pure: no I/O, no clock."""

from typing import Generic, TypeVar

E = TypeVar("E")


class Orderer(Generic[E]):
    """Delivers events strictly by number, from `start` on.

    What is below the pointer was delivered and is dropped (replay and live overlap by nature);
    what is above it is held until the hole fills, and then the whole stretch goes out at once.
    """

    def __init__(self, start: int) -> None:
        self.next = start
        """The number that is delivered next."""
        self._held: dict[int, E] = {}

    def offer(self, seq: int, event: E) -> list[E]:
        """Take an event; return what can be delivered now, in order."""
        if seq < self.next or seq in self._held:
            return []
        self._held[seq] = event
        return self._release()

    def pass_over(self, start: int, end: int) -> bool:
        """Whether `start` to before `end` is just what comes next, and nothing is held.

        If so, they count as delivered: the caller sends them as they are.
        """
        if start != self.next or self.gap:
            return False
        self.next = end
        return True

    def skip_to(self, seq: int) -> list[E]:
        """Everything below `seq` is accounted for otherwise (a snapshot stands for it).

        Returns what can be delivered now: what was held may go on right there.
        """
        if seq <= self.next:
            return []
        self.next = seq
        self._held = {held: event for held, event in self._held.items() if held >= seq}
        return self._release()

    def _release(self) -> list[E]:
        ready: list[E] = []
        while self.next in self._held:
            ready.append(self._held.pop(self.next))
            self.next += 1
        return ready

    @property
    def gap(self) -> bool:
        """Whether something waits behind a hole."""
        return bool(self._held)

    @property
    def held(self) -> int:
        """How many events wait behind a hole."""
        return len(self._held)
