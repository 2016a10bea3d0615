"""Workers that die, freeze and are told to stop in mid-run, and what it costs.

    python -m tests.services python -m tests.faults 10     # each fault ten times, on the services
    python -m tests.faults 3                               # on SQLite, without Redis

prints how many runs finished, the seconds that each fault held up its run, and every violation
of what the log promises. Leases are short here (see LEASES), so that it takes minutes, not hours.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from uuid import UUID

import psutil

from tests.live import Launcher, System
from tests.live_client import Follower, Visitor, rows, text_of
from tests.live_databases import Databases
from tests.program import Program
from tests.waiting import until

LEASES = {
    "KODA_LEASE": "3",
    "KODA_HEARTBEAT": "1",
    "KODA_SWEEP_INTERVAL": "0.5",
    "KODA_DRAIN_TIMEOUT": "1",
    "KODA_MAX_ATTEMPTS": "5",
}
WORDS = 150
PACE = 0.02
"""Each run says so many words, so many seconds apart: three seconds without a fault."""
AT = 40
"""The fault comes once so many events are out."""


@dataclass
class Outcome:
    """One run with one fault."""

    fault: str
    status: str
    attempt: int
    held_up: float
    """Seconds: the longest pause between two events that a watcher saw."""
    violations: list[str] = field(default_factory=list)


def owner(system: System, run_id: str) -> Program:
    """The worker process that holds the run."""
    sql = "SELECT claimed_by FROM koda_runs WHERE id = %s"
    [(claimed_by,)] = system.database.rows(sql, UUID(run_id).hex)
    pid = int(claimed_by.split("/")[1])
    return next(program for program in system.programs if program.pid == pid)


def attempt(system: System, run_id: str) -> int:
    [(number,)] = system.database.rows(
        "SELECT attempt FROM koda_runs WHERE id = %s", UUID(run_id).hex
    )
    return int(number)


async def kill(system: System, run_id: str, program: Program) -> None:
    """kill -9, then start it again as a supervisor would."""
    program.kill()
    program.launch()


async def freeze(system: System, run_id: str, program: Program) -> None:
    """Stop the process until somebody else has its run, and let it wake up then."""
    await _freeze_between_writes(system, program)
    try:
        await until(lambda: attempt(system, run_id) > 1, "the take-over", timeout=30)
        await until(_seconds(0.5), "the new worker to speak")
    finally:
        os.kill(program.pid, signal.SIGCONT)


async def _freeze_between_writes(system: System, program: Program) -> None:
    """SQLite has one lock for all writers: a process that is frozen with it stops every other."""
    await _stopped(program)
    while not system.database.writable():
        os.kill(program.pid, signal.SIGCONT)
        await until(_seconds(0.05), "the end of its write")
        await _stopped(program)


async def _stopped(program: Program) -> None:
    os.kill(program.pid, signal.SIGSTOP)
    threads = [psutil.Process(thread.id) for thread in psutil.Process(program.pid).threads()]
    await until(
        lambda: all(thread.status() == psutil.STATUS_STOPPED for thread in threads),
        "every thread to stand still",
    )


def _seconds(number: float):
    due = time.monotonic() + number
    return lambda: time.monotonic() >= due


async def stop(system: System, run_id: str, program: Program) -> None:
    """SIGTERM, as a deploy does, then start the next one."""
    program.terminate()
    await until(program.ended, "the end after SIGTERM", timeout=30)
    assert program.code == 0, f"SIGTERM ended the worker with {program.code}"
    program.launch()


FAULTS = {"kill -9": kill, "freeze": freeze, "SIGTERM": stop}


class TimedFollower(Follower):
    """A watcher that knows when each event came."""

    async def timed(self) -> float:
        """Follow to the end; the longest pause between two events, in seconds."""
        following = asyncio.create_task(self.follow())
        seen, last, longest = 0, time.monotonic(), 0.0
        while not following.done():
            await until(
                lambda: following.done() or len(self.events) > seen,  # noqa: B023
                "another event",
                timeout=60,
            )
            now = time.monotonic()
            longest, last = max(longest, now - last if seen else 0.0), now
            seen = len(self.events)
        await following
        return longest


async def fault_in_mid_run(system: System, visitor: Visitor, name: str) -> Outcome:
    """Ask, do harm to the worker that answers, follow to the end, and check what came out."""
    run_id = await visitor.ask("words", count=WORDS, pace=PACE)
    watcher = TimedFollower(visitor, run_id, system.gateway.reachable)
    watching = asyncio.create_task(watcher.timed())
    await until(lambda: len(watcher.events) >= AT, f"{AT} events", timeout=30)
    await FAULTS[name](system, run_id, owner(system, run_id))
    held_up = await asyncio.wait_for(watching, 60)
    run = await visitor.run(run_id)
    outcome = Outcome(name, run["status"], run["attempt"], held_up)
    outcome.violations = await violations(visitor, run_id, watcher, run)
    for program in system.programs:
        program.wait()
    return outcome


async def violations(visitor: Visitor, run_id: str, watcher: Follower, run: dict) -> list[str]:
    """What the contract promises and this run did not keep."""
    log = await visitor.log(run_id)
    terminal = [seq for seq, type, _ in log if type in {"run_completed", "run_failed"}]
    whole = "".join(f"w{number} " for number in range(WORDS))
    checks = {
        "the log is contiguous": [seq for seq, _, _ in log] == list(range(len(log))),
        "there is one terminal event, the last": terminal == [len(log) - 1],
        "the watcher saw each row once and in order": rows(watcher.events) == log,
        "the run is done": run["status"] == "done",
        "the output is whole": run["output"] == whole == text_of(log),
    }
    return [f"not so: {what}" for what, holds in checks.items() if not holds]


@contextlib.contextmanager
def two_workers(databases: Databases, directory: Path) -> Iterator[System]:
    """A gateway and two workers with short leases."""
    numbers = count()

    def new_directory(name: str) -> Path:
        made = directory / f"{name}-{next(numbers)}"
        made.mkdir()
        return made

    with contextlib.closing(Launcher(databases, new_directory)) as launcher:
        system = launcher(split=True, **LEASES)
        system.add("worker").wait()
        yield system


async def main(times: int) -> int:
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch)
        (directory / "databases").mkdir()
        with (
            contextlib.closing(Databases(directory / "databases")) as databases,
            two_workers(databases, directory) as system,
        ):
            async with system.visitor() as visitor:
                outcomes = [
                    await fault_in_mid_run(system, visitor, name)
                    for name in FAULTS
                    for _ in range(times)
                ]
    return report(outcomes)


def report(outcomes: list[Outcome]) -> int:
    """Print the figures; 1 if anything was violated."""
    for name in FAULTS:
        of = [outcome for outcome in outcomes if outcome.fault == name]
        delays = sorted(outcome.held_up for outcome in of)
        done = sum(outcome.status == "done" for outcome in of)
        print(
            f"{name}: {done} of {len(of)} finished; held up for "
            f"{delays[len(delays) // 2]:.1f} s (median), {delays[-1]:.1f} s (most)"
        )
    broken = [(outcome.fault, what) for outcome in outcomes for what in outcome.violations]
    print(f"violations: {len(broken)}")
    for fault, what in broken:
        print(f"  {fault}: {what}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)))
