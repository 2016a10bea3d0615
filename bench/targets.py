"""What Koda wants to reach, as data. Ratios are to systems of the same interleaved run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Table = dict[str, dict[str, dict[str, Any]]]


@dataclass(frozen=True)
class Target:
    """`measure` of Koda under `load`, at least or at most `bound` times that of `reference`.

    Without a reference the bound is the value itself.
    """

    load: str
    measure: str
    bound: float
    reference: str = ""
    at_least: bool = False

    @property
    def words(self) -> str:
        sign = "≥" if self.at_least else "≤"
        times = f" × {self.reference}" if self.reference else ""
        return f"{sign} {self.bound:,g}{times}"


TARGETS = (
    Target("one_flat", "delivered_per_s", 2, "floor", at_least=True),
    Target("one_flat", "delivered_per_s", 20, "hand_rolled", at_least=True),
    Target("one_flat", "cpu_s_per_100k", 1, "floor"),
    Target("100x50", "delivered_per_s", 4950, at_least=True),
    Target("100x50", "p50_ms", 0.3, "hand_rolled"),
    Target("100x50", "p99_ms", 0.6, "hand_rolled"),
    Target("100x50", "cpu_s_per_100k", 0.7, "hand_rolled"),
    Target("100x50", "cpu_s_per_100k", 1.2, "resumable_stream"),
    Target("100x50", "cpu_s_per_100k", 4, "floor"),
    Target("20x50", "p50_ms", 7),
    Target("20x50", "cpu_s_per_100k", 0.75, "hand_rolled"),
    Target("1x50_100subs", "p50_ms", 0.3, "hand_rolled"),
    Target("1x50_100subs", "cpu_s_per_100k", 0.35, "hand_rolled"),
    Target("1x50_100subs", "cpu_s_per_100k", 0.7, "resumable_stream"),
    Target("flat_100subs", "delivered_per_s", 4, "floor", at_least=True),
    Target("flat_100subs", "delivered_per_s", 10, "resumable_stream", at_least=True),
    Target("ttft", "p50_ms", 15),
    Target("ttft", "p50_ms", 2, "hand_rolled"),
    Target("waiting", "kb_per_client", 60),
    Target("waiting", "idle_cpu_percent", 1),
    Target("waiting", "database_connections", 10),
    Target("storm", "unfinished", 0),
    Target("storm", "first_byte_p99_ms", 2000),
    Target("storm", "database_connections", 10),
    Target("replay", "delivered_per_s", 100_000, at_least=True),
)


@dataclass(frozen=True)
class Outcome:
    """`value` is the ratio, or the value where there is no reference; None: not measured."""

    target: Target
    value: float | None

    @property
    def met(self) -> bool | None:
        if self.value is None:
            return None
        if self.target.at_least:
            return self.value >= self.target.bound
        return self.value <= self.target.bound


def outcomes(table: Table) -> list[Outcome]:
    """How each target that could be judged came out; a wrong answer meets none of its load."""
    return [Outcome(target, _value(table, target)) for target in TARGETS if target.load in table]


def wrong(table: Table) -> int:
    """Fragments of Koda's that were missing, doubled or out of order, under all loads."""
    counts = ("missing", "doubled", "disordered")
    return sum(row.get("koda", {}).get(count) or 0 for row in table.values() for count in counts)


def _value(table: Table, target: Target) -> float | None:
    row = table[target.load]
    own = row.get("koda", {}).get(target.measure)
    if own is None:
        return None
    if not target.reference:
        return float(own)
    other = row.get(target.reference, {}).get(target.measure)
    return own / other if other else None
