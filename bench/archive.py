"""Time retention on a database full of runs.

    python -m tests.services python -m bench.archive [--runs 100000] [--messages 1000000]

Fills the database as `bench.fill_admin` does, unless it has runs already, and then measures: how
runs to archive are found, while all of them wait and when none is left; how many are archived in
a second; and how long one run with a hundred thousand events takes, in the transaction and outside.
"""

from __future__ import annotations

import argparse
import json
import time
from datetime import timedelta
from typing import Any

from django.core.management import call_command
from django.db import connection

from bench.fill_admin import LONG_LOG, fill
from runs import retention
from runs.models import Message, Run
from runs.states import Status

AGE = timedelta(hours=6)


def plan(what: str) -> None:
    """What finding a batch costs, as the database tells it."""
    found = Run.objects.to_archive(AGE).values_list("pk", "next_seq")[: retention.BATCH]
    if connection.vendor != "postgresql":
        print(f"{what}: {found.explain()}")
        return
    [root] = json.loads(found.explain(analyze=True, buffers=True, format="json"))
    scan = deepest(root["Plan"])
    print(
        f"{what}: {root['Execution Time']:.2f} ms, {scan['Node Type']} on "
        f"{scan.get('Index Name', scan.get('Relation Name'))}, {scan['Actual Rows']:.0f} rows, "
        f"{scan['Shared Hit Blocks'] + scan['Shared Read Blocks']} pages"
    )


def deepest(node: dict[str, Any]) -> dict[str, Any]:
    return deepest(node["Plans"][0]) if node.get("Plans") else node


def archive_all() -> None:
    begun, runs, rows, slowest = time.monotonic(), 0, 0, 0.0
    while True:
        started = time.monotonic()
        done = retention.archive(AGE)
        slowest = max(slowest, time.monotonic() - started)
        if not done.runs:
            break
        runs, rows = runs + done.runs, rows + done.events
    took = time.monotonic() - begun
    print(
        f"archived {runs:,} runs in {took:.1f} s: {runs / took:,.0f} a second, {rows:,} rows less; "
        f"slowest batch of {retention.BATCH}: {slowest * 1000:.0f} ms"
    )


def one_long_run() -> None:
    run_id = Message.objects.filter(seq=LONG_LOG - 1).values_list("run_id", flat=True).first()
    if run_id is None:
        return
    Message.objects.filter(run_id=run_id, seq=0).update(type="run_started")
    end = {"type": "run_completed", "data": {"finish_reason": "stop", "usage": None}}
    Message.objects.filter(run_id=run_id, seq=LONG_LOG - 1).update(**end)
    Run.objects.filter(pk=run_id, status=Status.STREAMING).update(
        status=Status.DONE, finished_at="2026-01-01T00:00:00Z", lease_expires_at=None
    )
    begun = time.monotonic()
    projection = retention._fold(run_id, LONG_LOG - 1)  # noqa: SLF001
    folded = time.monotonic() - begun
    begun = time.monotonic()
    gone = retention._store(run_id, projection)  # noqa: SLF001
    stored = time.monotonic() - begun
    print(f"one run of {LONG_LOG:,} events: folded in {folded:.2f} s, {gone:,} rows less, ", end="")
    print(f"transaction of {stored:.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--messages", type=int, default=1_000_000)
    options = parser.parse_args()
    call_command("migrate", verbosity=0)
    if not Run.objects.exists():
        fill(options.runs, options.messages)
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")
    plan("finding a batch, all waiting")
    one_long_run()
    archive_all()
    plan("finding a batch, none left")


if __name__ == "__main__":
    main()
