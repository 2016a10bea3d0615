"""Measure Koda and its peers, under the same loads, interleaved.

    QUICK=1                a first impression in three minutes: a choice of short loads, once each
    ONLY=koda,floor,ttft   these systems and loads only
    REPEATS=3              how often each is measured

Writes bench/results.json, and the table and plots of docs/performance.md, when everything was
measured in full; always prints the table.
"""

from __future__ import annotations

import asyncio
import os
import random
import resource
import signal
import tempfile
import traceback
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import uvloop

from bench import growth, loads, report
from bench.loads import FULL, Load
from bench.measure import measure
from bench.results import Results
from bench.systems import SYSTEMS
from bench.systems.base import System, Unsupported, started

T = TypeVar("T")

PAUSE = 0.5
"""Seconds between two measurements, for what the last one left to be cleared up."""


def main() -> None:
    quick = os.environ.get("QUICK", "") not in {"", "0"}
    only = set(filter(None, os.environ.get("ONLY", "").split(",")))
    kinds, chosen = choose(only, quick=quick)
    repeats = int(os.environ.get("REPEATS", "1" if quick else "3"))
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with (
        tempfile.TemporaryDirectory(prefix="koda-bench-") as directory,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        results = runner.run(ended_with_all(run(kinds, chosen, repeats, Path(directory))))
        table = results.table()
        print(report.summary(table))
        if not quick and not only:
            report.write(table, growth=None)
            curves = runner.run(ended_with_all(growth.measure(Path(directory))))
            report.write(table, growth=curves)


async def ended_with_all(work: Coroutine[Any, Any, T]) -> T:
    """Do it; told to end, end all that it has started first. Raises SystemExit then."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        return await work
    except asyncio.CancelledError:
        raise SystemExit(128 + signal.SIGTERM) from None


def choose(only: set[str], *, quick: bool) -> tuple[list[type[System]], list[Load]]:
    """The systems and loads that were asked for; without a word about either, all of them."""
    systems = {kind.name: kind for kind in SYSTEMS}
    all_loads = {load.name: load for load in FULL}
    if unknown := only - systems.keys() - all_loads.keys():
        raise SystemExit(f"ONLY: there is no load and no system {', '.join(sorted(unknown))}")
    names = only & systems.keys() or (loads.QUICK_SYSTEMS if quick else systems.keys())
    wanted = only & all_loads.keys() or (loads.QUICK_LOADS if quick else all_loads.keys())
    chosen = [load for name, load in all_loads.items() if name in wanted]
    return (
        [kind for name, kind in systems.items() if name in names],
        [loads.quick(load) for load in chosen] if quick else chosen,
    )


async def run(
    kinds: list[type[System]], chosen: list[Load], repeats: int, directory: Path
) -> Results:
    """Start all systems, measure each load on one after the other, end them."""
    results = Results([kind.name for kind in kinds])
    systems = [kind(directory) for kind in kinds]
    try:
        for system in list(systems):
            try:
                system.start()
            except Exception as error:  # noqa: BLE001 - one peer less, and the table says why
                results.absent(system.name, f"{type(error).__name__}: {error}")
        ready = [system for system in systems if system.name not in results.reasons]
        for repeat in range(repeats):
            for load in chosen:
                for system in random.sample(ready, len(ready)):
                    await one(system, load, results, f"{repeat + 1}/{repeats}")
    finally:
        for system in systems:
            system.stop()
    return results


async def one(system: System, load: Load, results: Results, label: str) -> None:
    """A single measurement; one that fails is part of the results."""
    await asyncio.sleep(PAUSE)
    try:
        if load.kind == "waiting":  # what earlier loads have left would hide what clients cost
            async with started(type(system), system.directory) as fresh:
                sample = await measure(fresh, load)
        else:
            sample = await measure(system, load)
    except Unsupported as why:
        results.cannot(load, system, str(why))
        return
    except Exception as error:  # noqa: BLE001 - a system that breaks down has a result too
        if os.environ.get("BENCH_TRACE"):
            traceback.print_exc()
        results.failed(load, system, f"{type(error).__name__}: {error}")
        print(f"{label} {load.name} {system.name}: {error!r}", flush=True)
        return
    line = results.add(load, system, sample)
    print(f"{label} {load.name:14} {system.name:20} {line}", flush=True)
