"""What watchers cost a gateway, measured on real processes.

    python -m tests.services python -m bench.watchers [--idle 1000] [--megabytes 200] …

Without services it measures one process on SQLite, agents included, which no bound is meant for.
Three loads, each on a system of its own:

idle     Many streams on which nothing happens: database connections, threads, memory, idle CPU.
stalled  Watchers who stop reading while a long answer is written: memory of the gateway, and how
         long after its commit each event reaches somebody who does read.
reset    Many streams that vanish without a goodbye: how soon the gateway is as it was.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from bench.figures import Gateway, Report
from tests.live import System
from tests.live_client import Visitor
from tests.live_databases import Databases
from tests.raw import raw_streams

MEGABYTE = 1024 * 1024
FILES = 16_384
RUNS = 50
"""Runs that idle watchers share."""
PATIENCE = 30.0
"""Seconds within which a gateway has to be as it was."""
FEW = 5
"""Files more than before that may be open: connections of the pool come and go."""
ROOM = 5
"""Mebibytes that may stay of what vanished watchers took."""


async def soon(condition: Callable[[], bool], patience: float) -> float:
    """Seconds until the condition held, `patience` if it never did."""
    begun = time.monotonic()
    while not condition() and time.monotonic() - begun < patience:  # noqa: ASYNC110 - elsewhere
        await asyncio.sleep(0.25)
    return time.monotonic() - begun


async def silent_runs(system: System, visitor: Visitor) -> list[str]:
    gate = str(system.gate())
    return [await visitor.ask("silent", gate=gate) for _ in range(RUNS)]


async def idle(system: System, count: int, report: Report) -> None:
    gateway = Gateway(system)
    async with system.visitor() as visitor, AsyncExitStack() as streams:
        runs = await silent_runs(system, visitor)
        await streams.enter_async_context(raw_streams(visitor, runs, len(runs)))  # to be warm
        memory, threads, most = gateway.memory, gateway.threads, gateway.connections
        begun = time.monotonic()
        many = raw_streams(visitor, runs, count)
        opening = asyncio.create_task(streams.enter_async_context(many))
        while not opening.done():
            most = max(most, gateway.connections)
            await asyncio.sleep(0.05)
        await opening
        report.load(f"idle: {count} watchers of {RUNS} runs")
        report.say("opened within", f"{time.monotonic() - begun:.1f} s")
        report.hold("database connections, most", most, "at most 10", good=most <= 10)
        report.say("database connections, then", gateway.connections)
        grown = gateway.threads - threads
        report.hold("threads more", grown, "at most 5", good=grown <= 5)
        each = (gateway.memory - memory) / count / 1024
        report.hold("memory for each", f"{each:.0f} KiB", "at most 60 KiB", good=each <= 60)
        cpu = gateway.cpu
        await asyncio.sleep(10)
        report.say("CPU while nothing happens", f"{(gateway.cpu - cpu) / 10:.1%}")


async def stalled(system: System, count: int, megabytes: int, report: Report) -> None:
    gateway = Gateway(system)
    size = 65_000
    arrivals: dict[int, float] = {}
    async with system.visitor() as visitor:
        await visitor.read(await visitor.ask("words"))
        run = await visitor.ask("words", count=megabytes * MEGABYTE // size, size=size)
        async with raw_streams(visitor, [run], count, buffer=4096):
            memory = most = gateway.memory
            reading = asyncio.create_task(read_along(visitor, run, arrivals))
            while not reading.done():
                most = max(most, gateway.memory)
                await asyncio.sleep(0.1)
            took = await reading
    lags = lags_of(system, run, arrivals)
    report.load(f"stalled: {count} watchers that do not read {megabytes} MB, and one that does")
    report.say("written and read within", f"{took:.1f} s")
    report.say("events", len(arrivals))
    grown = (most - memory) / MEGABYTE
    report.hold("memory more, most", f"{grown:.0f} MiB", "less than 100 MiB", good=grown < 100)
    report.say("from commit to the reader, median", f"{statistics.median(lags):.3f} s")
    report.say("from commit to the reader, p99", f"{lags[len(lags) * 99 // 100]:.3f} s")
    slowest = lags[-1]
    report.hold("from commit to the reader, slowest", f"{slowest:.3f} s", "< 1 s", good=slowest < 1)


async def read_along(visitor: Visitor, run: str, arrivals: dict[int, float]) -> float:
    """Note when each event arrived; returns the seconds that all took."""
    begun = time.monotonic()
    async with visitor.watch(run) as stream:
        arrivals[-1] = time.time()
        while (frame := await stream.next()) is not None:
            if frame.id is not None:
                arrivals[frame.id] = time.time()
    return time.monotonic() - begun


def lags_of(system: System, run: str, arrivals: dict[int, float]) -> list[float]:
    """Seconds from commit to arrival, sorted, of what was committed once the reader was there.

    By the one clock of this machine.
    """
    joined = arrivals.pop(-1)
    sql = "SELECT seq, created_at FROM koda_messages WHERE run_id = %s"
    rows = system.database.rows(sql, UUID(run).hex)
    return sorted(arrivals[seq] - moment(at) for seq, at in rows if moment(at) > joined)


def moment(at: Any) -> float:  # noqa: ANN401 - SQLite gives text
    if isinstance(at, str):
        at = datetime.fromisoformat(at).replace(tzinfo=UTC)
    return float(at.timestamp())


async def reset(system: System, count: int, report: Report) -> None:
    gateway = Gateway(system)
    async with system.visitor() as visitor:
        runs = await silent_runs(system, visitor)
        async with raw_streams(visitor, runs, count):  # so that memory is at its base
            pass
        await soon(lambda: gateway.watchers == 0, PATIENCE)
        files, groups, threads = gateway.files, gateway.groups, gateway.threads
        memory = gateway.memory
        async with raw_streams(visitor, runs, count):
            while_open = (gateway.watchers, gateway.files, gateway.groups)
        took = await soon(
            lambda: (
                gateway.watchers == 0 and gateway.files <= files + FEW and gateway.groups <= groups
            ),
            PATIENCE,
        )
    report.load(f"reset: {count} watchers of {RUNS} runs vanish at once")
    report.say("watchers, files, groups while open", "{}, {}, {}".format(*while_open))
    report.hold("at base after", f"{took:.1f} s", "within 30 s", good=took < PATIENCE)
    report.say("threads more", gateway.threads - threads)
    more = (gateway.memory - memory) / MEGABYTE
    report.hold("memory more", f"{more:.1f} MiB", "at most 5 MiB", good=more <= ROOM)


@asynccontextmanager
async def running(databases: Databases, directory: Path) -> AsyncIterator[System]:
    await asyncio.to_thread(directory.mkdir)
    with closing(System(databases, directory, {})) as system:
        system.start(split=databases.services)
        yield system


async def measure(options: argparse.Namespace) -> int:
    """How many bounds were missed."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        with closing(Databases(place)) as databases:
            report = Report(bounds=databases.services)
            if options.idle:
                async with running(databases, place / "idle") as system:
                    await idle(system, options.idle, report)
            if options.stalled:
                async with running(databases, place / "stalled") as system:
                    await stalled(system, options.stalled, options.megabytes, report)
            if options.reset:
                async with running(databases, place / "reset") as system:
                    await reset(system, options.reset, report)
    return report.missed


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--idle", type=int, default=1000, help="idle watchers; 0 leaves it out")
    parser.add_argument("--stalled", type=int, default=20, help="watchers that do not read")
    parser.add_argument("--megabytes", type=int, default=200, help="what they do not read")
    parser.add_argument("--reset", type=int, default=500, help="watchers that vanish")
    options = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(FILES, most), most))
    return asyncio.run(measure(options))


if __name__ == "__main__":
    raise SystemExit(main())
