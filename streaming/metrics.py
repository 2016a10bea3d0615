"""What a gateway counts about streams, for Prometheus."""

from __future__ import annotations

from typing import Any
from weakref import WeakSet

from prometheus_client import Counter, Gauge

from streaming.orderer import Orderer

RUNS = Gauge("koda_runs", "Open runs in the database, by status.", ["status"])
OLDEST_PENDING = Gauge(
    "koda_oldest_pending_seconds", "Age of the oldest run that no worker has claimed; 0 for none."
)
WATCHERS = Gauge("koda_watchers", "Connections that watch a run in this process.")
LOG_READS = Counter(
    "koda_log_reads",
    "Reads of the log by reason: open, page, behind, gap, held, overflow.",
    ["reason"],
)
HELD_FRAGMENTS = Gauge("koda_held_fragments", "Events that wait behind a hole, in all streams.")

_lines: WeakSet[Orderer[Any]] = WeakSet()


def count_held(orderer: Orderer[Any]) -> None:
    """Include what this one holds, for as long as it lives."""
    _lines.add(orderer)


HELD_FRAGMENTS.set_function(lambda: sum(orderer.held for orderer in _lines))
