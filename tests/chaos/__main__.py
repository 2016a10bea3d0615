"""Two minutes of chaos and a page about it: `python -m tests.chaos --duration 120 --seed 7`."""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from tests.chaos import report, session


def main() -> int:
    """1 if a promise was broken; then the evidence is kept, and where is said."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos")
    parser.add_argument("--duration", type=float, default=120, help="seconds")
    parser.add_argument("--seed", type=int, default=random.randrange(1000))
    parser.add_argument("--people", type=int, default=6)
    parser.add_argument("--kinds", help="faults, a comma list; all by default")
    options = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="koda-chaos-"))
    print(f"seed {options.seed}, {options.duration:g} s of chaos …", flush=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # take along what was started
    began = time.monotonic()
    more = {"kinds": options.kinds.split(",")} if options.kinds else {}
    outcome = session.hold(
        directory, seed=options.seed, duration=options.duration, people=options.people, **more
    )
    seconds = time.monotonic() - began
    lines = report.page(
        outcome.evidence, outcome.violations, outcome.bounds, seed=options.seed, seconds=seconds
    )
    print("\n".join(lines))
    if not outcome.violations and all(bound.kept for bound in outcome.bounds):
        shutil.rmtree(directory)
        return 0
    report.keep(outcome.evidence, outcome.violations, directory)
    print(f"\n  the evidence and the logs of all processes: {directory}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
