"""The loads, as data."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Load:
    """`runs` runs with `watchers` clients each, `fragments` long, `rate` a second (0: flat out).

    `kind`: `live` is watched while it happens; `ttft` is one run after the other, from the POST to
    the first fragment; `waiting` clients hear nothing; in a `storm` all clients come at once to a
    run that is over, in a `replay` one after the other.
    """

    name: str
    what: str
    runs: int = 1
    watchers: int = 1
    rate: float = 0.0
    fragments: int = 200_000
    kind: str = "live"
    limit: float = 10.0
    """Seconds after which a run without a pace ends early: some systems are slow."""

    @property
    def clients(self) -> int:
        return self.runs * self.watchers

    @property
    def offered(self) -> float | None:
        """Fragments a second that all clients together should get."""
        return self.rate * self.clients if self.rate else None


def paced(name: str, what: str, *, runs: int, watchers: int = 1, seconds: float) -> Load:
    rate = 50.0
    return Load(name, what, runs, watchers, rate, round(seconds * rate))


SECONDS = 10.0

FULL = (
    Load("one_flat", "1 run flat out"),
    paced("100x50", "100 runs × 50/s", runs=100, seconds=SECONDS),
    paced("20x50", "20 runs × 50/s", runs=20, seconds=SECONDS),
    paced("1x50", "1 run × 50/s", runs=1, seconds=SECONDS),
    paced("1x50_100subs", "1 run × 50/s × 100 watchers", runs=1, watchers=100, seconds=SECONDS),
    Load("flat_100subs", "1 run flat out × 100 watchers", watchers=100, fragments=10_000),
    Load("ttft", "POST to first delta", runs=100, fragments=1, kind="ttft"),
    Load("waiting", "500 waiting clients", runs=50, watchers=10, kind="waiting"),
    Load("storm", "1,000 clients × 1,000 events", watchers=1000, fragments=1000, kind="storm"),
    Load("replay", "replay of 10,000 events", watchers=3, fragments=10_000, kind="replay"),
)


QUICK_SYSTEMS = {"koda", "floor", "hand_rolled", "resumable_stream"}
QUICK_LOADS = {"one_flat", "100x50", "1x50_100subs", "ttft", "replay"}


def quick(load: Load) -> Load:
    """A short look at the same: good for a first impression, not for the table."""
    match load.kind:
        case "live" if load.rate:
            return replace(load, fragments=100)
        case "live":
            return replace(load, fragments=load.fragments // 2, limit=2.0)
        case "ttft":
            return replace(load, runs=20)
        case "storm":
            return replace(load, watchers=200)
    return load
