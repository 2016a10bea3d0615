"""What a process counts about runs, for Prometheus. docs/operations.md says what to do about it.

Each process tells its own numbers: a gateway under /metrics, a worker on `--metrics-port`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from prometheus_client import Counter, Histogram

from runs.errors import KodaError
from runs.events import EventType

if TYPE_CHECKING:
    from runs.writes import Append, Claimed

WAITS = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
GAPS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
FLUSHES = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30)
SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)

RUNS_ENDED = Counter("koda_runs_ended", "Runs that this process ended, by status.", ["status"])
QUEUE_WAIT = Histogram(
    "koda_queue_wait_seconds", "From the message to the first claim of its run.", buckets=WAITS
)
FIRST_TOKEN = Histogram(
    "koda_first_token_seconds", "From taking a run to its first text stored.", buckets=WAITS
)
FRAGMENT_GAP = Histogram(
    "koda_fragment_gap_seconds", "Between two writes of text of one run.", buckets=GAPS
)
FLUSH_EVENTS = Histogram("koda_flush_events", "Events that one flush stored.", buckets=SIZES)
FLUSH_SECONDS = Histogram(
    "koda_flush_seconds", "Duration of one flush, its retries included.", buckets=FLUSHES
)
REFUSED_WRITES = Counter(
    "koda_refused_writes", "Late writes that the log did not take, by reason.", ["kind"]
)
TAKEOVERS = Counter("koda_takeovers", "Runs taken over from a worker that was lost.")
RESTARTS = Counter("koda_restarts", "Answers begun anew, by reason.", ["reason"])
PUBLISH_DROPPED = Counter(
    "koda_publish_dropped", "Stored events that were not published; watchers read the log."
)


class Pace:
    """How long one attempt's readers wait: for the first text, and then between texts."""

    __slots__ = ("_since", "_spoke")

    def __init__(self) -> None:
        self._since = time.monotonic()
        self._spoke = False

    def spoke(self) -> None:
        """Text was stored."""
        now = time.monotonic()
        (FRAGMENT_GAP if self._spoke else FIRST_TOKEN).observe(now - self._since)
        self._since, self._spoke = now, True


@contextmanager
def flush(entries: Collection[Append]) -> Iterator[None]:
    """Measure one."""
    FLUSH_EVENTS.observe(sum(len(entry.events) for entry in entries))
    with FLUSH_SECONDS.time():
        yield


def claimed(taken: Claimed) -> None:
    if taken.run.started_at is not None:
        waited = taken.run.started_at - taken.run.created_at
        QUEUE_WAIT.observe(waited.total_seconds())


def taken_over(previous: str, taken: Claimed) -> None:
    """`previous` is the worker that lost the run, empty if it was let go on purpose."""
    if previous:
        TAKEOVERS.inc()
    for event in taken.published:
        if event.type == EventType.RUN_RESTARTED:
            RESTARTS.labels(event.data["reason"]).inc()


def refused(answer: KodaError) -> None:
    """Counted under the error's name: superseded, already_finished, gone, unwritable …"""
    REFUSED_WRITES.labels(re.sub(r"(?<!^)(?=[A-Z])", "_", type(answer).__name__).lower()).inc()
