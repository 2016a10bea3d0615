"""What was measured, as `bench/results.json` has it."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from bench.loads import Load
from bench.measure import Sample
from bench.systems.base import System

Row = dict[str, Any]

COUNTS = ("missing", "doubled", "disordered", "unfinished")


class Results:
    """Samples by load and system; `table()` takes the median of the repetitions."""

    def __init__(self, systems: Sequence[str]) -> None:
        self.systems = list(systems)
        self.reasons: dict[str, str] = {}
        """Systems that are not there at all, and why."""
        self.loads: dict[str, Load] = {}
        self._rows: dict[tuple[str, str], list[Row]] = defaultdict(list)
        self._notes: dict[tuple[str, str], Row] = {}

    def absent(self, system: str, why: str) -> None:
        self.reasons[system] = why
        print(f"{system}: {why}", flush=True)

    def cannot(self, load: Load, system: System, why: str) -> None:
        self.loads[load.name] = load
        self._notes[load.name, system.name] = {"unsupported": why}

    def failed(self, load: Load, system: System, why: str) -> None:
        self.loads[load.name] = load
        self._notes[load.name, system.name] = {"error": why[:300]}

    def add(self, load: Load, system: System, sample: Sample) -> str:
        """Keep it; one line that sums it up."""
        self.loads[load.name] = load
        row = row_of(sample, persists=system.persists)
        if load.kind in {"ttft", "waiting"}:
            row["delivered_per_s"] = None
        self._rows[load.name, system.name].append(row)
        shown = {key: value for key, value in row.items() if value not in {None, 0}}
        return "  ".join(f"{key} {value}" for key, value in shown.items())

    def table(self) -> dict[str, dict[str, Row]]:
        return {load: {s: self._cell(load, s) for s in self.systems} for load in self.loads}

    def _cell(self, load: str, system: str) -> Row:
        if system in self.reasons:
            return {"absent": self.reasons[system]}
        rows = self._rows.get((load, system))
        note = self._notes.get((load, system), {})
        if not rows:
            return note
        cell: Row = {"repetitions": len(rows), **note}
        for key in rows[0]:
            values = [row[key] for row in rows if row[key] is not None]
            if key == "persists" or not values:
                cell[key] = rows[0][key]
            else:
                cell[key] = sum(values) if key in COUNTS else statistics.median(values)
        return cell


def row_of(sample: Sample, *, persists: bool) -> Row:
    tally = sample.tally
    ordered = sorted(tally.latencies)
    first = sorted(sample.first_bytes)
    row: Row = {
        "delivered_per_s": _rounded(tally.delivered / sample.seconds) if tally.delivered else None,
        "offered_per_s": sample.offered,
        "p50_ms": _milliseconds(ordered, 0.50),
        "p99_ms": _milliseconds(ordered, 0.99),
        "cpu_s_per_100k": None,
        "kb_per_client": None,
        "missing": tally.missing,
        "doubled": tally.doubled,
        "disordered": tally.disordered,
        "unfinished": tally.unfinished,
        "persists": persists,
        "delivered": tally.delivered,
    }
    if sample.cpu is not None and tally.delivered:
        row["cpu_s_per_100k"] = _rounded(sample.cpu * 100_000 / tally.delivered)
    if sample.bytes_per_client is not None:
        row["kb_per_client"] = _rounded(sample.bytes_per_client / 1024)
    if first:
        row["first_byte_p99_ms"] = _milliseconds(first, 0.99)
    if tally.delivered:
        row["fragments_per_event"] = _rounded(tally.delivered / max(1, tally.events))
    return row | {name: _rounded(value) for name, value in sample.extra.items()}


def _milliseconds(ordered: list[float], part: float) -> float | None:
    if not ordered:
        return None
    return _rounded(1000 * ordered[min(len(ordered) - 1, int(part * len(ordered)))])


def _rounded(value: float) -> float:
    """Three significant digits: more is noise."""
    return float(f"{value:.3g}")
