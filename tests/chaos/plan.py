"""What will happen, as far as the seed decides: faults on a time line, and what people do.

The same seed gives the same plan. How it turns out depends on the machine too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of fault. Seconds."""

    targets: int
    """How many processes it can hit."""
    lasts: tuple[float, float]
    quiet: float
    """Time that its effects need to pass; the next fault mostly leaves it that."""


KINDS: dict[str, Kind] = {
    "worker killed": Kind(2, (0.5, 3), 7),
    "worker frozen": Kind(2, (0.5, 6), 2),
    "worker stopped": Kind(2, (0.2, 2), 1),
    "gateway killed": Kind(2, (0.2, 2), 1),
    "gateway stopped": Kind(2, (0.2, 1), 1),
    "gateway frozen": Kind(2, (0.5, 3), 1),
    "redis killed": Kind(1, (1, 4), 5.5),
    "redis restarted": Kind(1, (0, 0), 5.5),
    "redis frozen": Kind(1, (1, 4), 5.5),
    "redis flushed": Kind(1, (0, 0), 1),
    "redis clients cut": Kind(1, (0, 0), 5.5),
    "postgres restarted": Kind(1, (0, 1), 5.5),
    "postgres killed": Kind(1, (0, 1), 5.5),
    "postgres frozen": Kind(1, (1, 4), 5.5),
    "postgres sessions cut": Kind(1, (0, 0), 3),
    "messages disordered": Kind(1, (2, 4), 2.5),
    "last messages lost": Kind(1, (3, 5), 2),
}
PROCESSES = ("worker killed", "worker stopped", "gateway killed", "gateway stopped")
"""What can be done to a system without services."""

OVERLAPPING = 0.25
"""Share of the faults that come while the one before is still going on."""


@dataclass(frozen=True, slots=True)
class Fault:
    kind: str
    target: int
    lasts: float
    overlaps: bool
    """Comes while the one before it is still going on; else once that has passed."""
    gap: float
    """Seconds to wait then."""


def faults(
    seed: int, *, kinds: Sequence[str] = tuple(KINDS), hurry: float = 1.0
) -> Iterator[Fault]:
    """Every kind in turn, in a new order each time round. `hurry` below 1 shortens the quiet."""
    rng = Random(f"faults {seed}")
    quiet = 1.0
    while True:
        for name in rng.sample(list(kinds), len(kinds)):
            kind = KINDS[name]
            overlaps = rng.random() < OVERLAPPING
            gap = rng.uniform(0.05, 0.5) if overlaps else quiet * hurry + rng.uniform(0, 0.5)
            yield Fault(name, rng.randrange(kind.targets), rng.uniform(*kind.lasts), overlaps, gap)
            quiet = max(kind.quiet, quiet if overlaps else 0)


@dataclass(frozen=True, slots=True)
class Watching:
    """How somebody watches a run."""

    gateway: int
    habit: str
    """steady; cutting (leaves and resumes); stalling (does not read for a while); late."""
    every: int
    """Events between two cuts or stalls."""
    seconds: float
    """How long a stall or the delay lasts."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A message, its answer, and what its sender does meanwhile."""

    fresh: bool
    """Begins a conversation."""
    words: int
    pace: float
    silent: bool
    """The model stops in mid-answer and says nothing more."""
    act: str
    """nothing, correct, cancel, queue or interrupt."""
    after: int | None
    """Events after which to act; None acts at the end of the answer."""
    offset: float
    """Seconds to wait then."""
    watching: tuple[Watching, ...]


WITNESSES = 2
"""So many people only ever ask for long answers and watch them at both gateways."""

HABITS = ("steady", "cutting", "stalling", "late")
ACTS = ("nothing", "correct", "correct", "cancel", "queue", "interrupt")


def turns(seed: int, person: int) -> Iterator[Turn]:
    """What this person does, one turn after the other, without end."""
    rng = Random(f"person {seed} {person}")
    while person < WITNESSES:
        steady = tuple(Watching(gateway, "steady", 1, 0) for gateway in (0, 1))
        yield Turn(True, 200, 0.05, False, "nothing", None, 0, steady)
    while True:
        words, pace = rng.randint(5, 60), rng.choice((0.01, 0.03, 0.06))
        silent = rng.random() < 0.12
        act = rng.choice(("correct", "cancel", "cancel")) if silent else rng.choice(ACTS)
        at_end = not silent and rng.random() < 0.6
        yield Turn(
            fresh=rng.random() < 0.3,
            words=words,
            pace=pace,
            silent=silent,
            act=act,
            after=None if at_end else rng.randint(1, 10),
            offset=rng.uniform(0, 2 * pace) if at_end else rng.uniform(0, 0.5),
            watching=tuple(
                Watching(
                    gateway=rng.randrange(2),
                    habit="steady" if number == 0 else rng.choice(HABITS),
                    every=rng.randint(1, 20),
                    seconds=rng.uniform(0.1, 2),
                )
                for number in range(rng.randint(1, 3))
            ),
        )
