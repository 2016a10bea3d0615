"""A short session of chaos. `make chaos` has longer ones, with every kind of fault."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.chaos import report, session
from tests.chaos.plan import PROCESSES

SERVICES = bool(os.environ.get("REDIS_URL"))
KINDS = (
    "worker killed",
    "gateway killed",
    "redis killed",
    "postgres restarted",
    "last messages lost",
)
SECONDS = 10.0 if SERVICES else 6.0


@pytest.mark.timeout(240)
def test_no_promise_is_broken_whatever_dies(tmp_path: Path):
    """How long things take is measured by `make chaos`: here it would depend on the load."""
    outcome = session.hold(
        tmp_path,
        seed=1,
        duration=SECONDS,
        people=5,
        services=SERVICES,
        kinds=KINDS if SERVICES else PROCESSES,
        hurry=0.2,
    )
    report.keep(outcome.evidence, outcome.violations, tmp_path)
    assert outcome.violations == []
    assert outcome.evidence.happened
    assert any(run.status == "done" for run in outcome.evidence.runs.values())
