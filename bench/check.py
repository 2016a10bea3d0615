"""Was every stream right? A fast wrong answer counts as none."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain

FRAGMENT = re.compile(rb"(\d+)@(\d+\.\d+)([;!])")
ID = re.compile(rb"^id: (\d+)$", re.MULTILINE)

Arrivals = list[tuple[float, bytes]]


class NotOK(Exception):
    """The answer was no stream."""


@dataclass
class Tally:
    """What arrived, of one stream or of several together. Latencies in seconds."""

    delivered: int = 0
    missing: int = 0
    doubled: int = 0
    disordered: int = 0
    events: int = 0
    unfinished: int = 0
    bytes: int = 0
    last_arrival: float = 0.0
    latencies: list[float] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        self.delivered += other.delivered
        self.missing += other.missing
        self.doubled += other.doubled
        self.disordered += other.disordered
        self.events += other.events
        self.unfinished += other.unfinished
        self.bytes += other.bytes
        self.last_arrival = max(self.last_arrival, other.last_arrival)
        self.latencies += other.latencies

    @property
    def wrong(self) -> int:
        return self.missing + self.doubled + self.disordered


def check(arrivals: Arrivals, *, numbered: bool) -> Tally:
    """Take a stream apart.

    `numbered`: the ids of its events must be 0, 1, 2 … A hole, or a stream that ended before the
    last fragment, is missing; one that was cut off by the client is only unfinished.
    """
    tally = Tally(bytes=sum(len(data) for _, data in arrivals))
    numbers: list[int] = []
    ids: list[int] = []
    complete = False
    for at, frame in frames(arrivals):
        tally.events += b"data:" in frame
        if numbered and (id := ID.search(frame)):
            ids.append(int(id[1]))
        for number, made, end in FRAGMENT.findall(frame):
            numbers.append(int(number))
            tally.latencies.append(at - float(made))
            tally.last_arrival = at
            complete = complete or end == b"!"
    if ids != list(range(len(ids))):
        tally.disordered += 1
    tally.delivered = len(numbers)
    tally.unfinished = not complete
    _compare(tally, numbers)
    return tally


def _compare(tally: Tally, numbers: list[int]) -> None:
    """Count what is missing, doubled or out of order."""
    if numbers == list(range(len(numbers))):
        return
    seen: set[int] = set()
    greatest = -1
    for number in numbers:
        if number in seen:
            tally.doubled += 1
        elif number < greatest:
            tally.disordered += 1
        seen.add(number)
        greatest = max(greatest, number)
    tally.missing = greatest + 1 - len(seen)


def frames(arrivals: Arrivals) -> Iterator[tuple[float, bytes]]:
    """Each whole event of the stream, with the time at which its last byte came."""
    rest = b""
    for at, data in bodies(arrivals):
        *whole, rest = (rest + data).split(b"\n\n")
        for frame in whole:
            yield at, frame


def bodies(arrivals: Arrivals) -> Iterator[tuple[float, bytes]]:
    """The answer's body in the pieces in which it came. Raises NotOK for other answers."""
    whole = iter(arrivals)
    began, head = 0.0, b""
    while b"\r\n\r\n" not in head and (arrival := next(whole, None)):
        began, head = arrival[0], head + arrival[1]
    head, _, rest = head.partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        raise NotOK(head[:200].decode("latin-1"))
    pieces = chain([(began, rest)], whole)
    return _unchunk(pieces) if b"transfer-encoding: chunked" in head.lower() else pieces


def _unchunk(pieces: Iterable[tuple[float, bytes]]) -> Iterator[tuple[float, bytes]]:
    """HTTP's chunked coding, taken off; what came together stays together."""
    rest = b""
    for at, data in pieces:
        buffer = rest + data
        place, out = 0, []
        while (line := buffer.find(b"\r\n", place)) >= 0:
            end = line + 2 + int(buffer[place:line], 16)
            if end + 2 > len(buffer):
                break
            out.append(buffer[line + 2 : end])
            place = end + 2
        rest = buffer[place:]
        if out:
            yield at, b"".join(out)
