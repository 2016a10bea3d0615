"""One page for people: what was done, what went on, how long it took, what is not so."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from tests.chaos.bounds import Bound
from tests.chaos.checker import Violation
from tests.chaos.evidence import Evidence

SHOWN = 20
"""Violations that are printed; all of them are in the evidence."""


def page(
    evidence: Evidence, found: list[Violation], bounds: list[Bound], *, seed: int, seconds: float
) -> Iterator[str]:
    """The report's lines."""
    runs = list(evidence.runs.values())
    seen = sum(len(transcript.seen) for transcript in evidence.transcripts)
    restarts = Counter(
        row.data["reason"] for run in runs for row in run.log if row.type == "run_restarted"
    )
    load = os.getloadavg()[1]
    yield f"chaos, seed {seed}, {seconds:.0f} s, load {load:.1f} on {os.cpu_count()} processors"
    yield ""
    yield f"  runs        {len(runs)}: {_counts(Counter(run.status for run in runs))}"
    yield f"  messages    {len(evidence.accepted)} accepted, {_merged(evidence)} joined a run"
    yield f"  events      {sum(len(run.log) for run in runs)} stored, {seen} received"
    connections = sum(transcript.connections for transcript in evidence.transcripts)
    yield f"  watchers    {len(evidence.transcripts)}, over {connections} connections"
    yield f"  faults      {len(evidence.happened)}"
    for kind, times in sorted(Counter(one.kind for one in evidence.happened).items()):
        yield f"    {times:3} × {kind}"
    yield f"  restarts    {_counts(restarts)}"
    errors = Counter(code for transcript in evidence.transcripts for code in transcript.errors)
    yield f"  told to reconnect: {_counts(errors)}"
    refused = Counter(str(refusal.status) for refusal in evidence.refusals)
    yield f"  calls refused: {_counts(refused)}"
    yield ""
    for bound in bounds:
        yield _line(bound)
    yield ""
    yield f"  violations  {len(found)}"
    yield from (f"    {where}: {what}" for where, what in found[:SHOWN])


def _line(bound: Bound) -> str:
    times = len(bound.samples)
    if bound.most is None:
        return f"  {bound.what}: not measured (at most {bound.limit:g} s)"
    longest, which = bound.most
    verdict = "" if bound.kept else f"  TOO LONG: {which}"
    return f"  {bound.what}: {longest:.2f} s at most of {bound.limit:g} s, {times} ×{verdict}"


def _merged(evidence: Evidence) -> int:
    return sum(message.merged for message in evidence.accepted)


def _counts(counter: Counter[str]) -> str:
    return ", ".join(f"{times} {what}" for what, times in sorted(counter.items())) or "none"


def keep(evidence: Evidence, found: list[Violation], directory: Path) -> None:
    """Write down all that a search for the cause may need."""
    (directory / "evidence.json").write_text(json.dumps(asdict(evidence), indent=1))
    lines = [f"{where}: {what}" for where, what in found]
    (directory / "violations.txt").write_text("\n".join(lines))
