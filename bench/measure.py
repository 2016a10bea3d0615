"""One load on one system."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from bench.check import Tally, check
from bench.client import Watch
from bench.fragments import Plan
from bench.loads import Load
from bench.systems.base import System, Unsupported

GRACE = 5.0
"""Seconds beyond its plan that a load may take; what has not come then is not waited for."""

WAITED = 8.0
"""Seconds for which clients wait while CPU is counted."""

AT_ONCE = 8
"""Runs that are started at the same time."""

FORGOTTEN = 2.5
"""Seconds after which no system has at hand what it has just read for somebody else."""


class TooLate(Exception):
    """The run began before everybody was there to see it."""


@dataclass
class Sample:
    """What one measurement found. Seconds, bytes, and counts."""

    tally: Tally
    seconds: float
    cpu: float | None = None
    offered: float | None = None
    bytes_per_client: float | None = None
    first_bytes: list[float] = field(default_factory=list)
    extra: dict[str, float] = field(default_factory=dict)


async def measure(system: System, load: Load) -> Sample:
    """Raises Unsupported, or whatever went wrong."""
    if why := system.cannot.get(load.name) or system.cannot.get(load.kind):
        raise Unsupported(why)
    match load.kind:
        case "live":
            for patience in (1, 3):
                with suppress(TooLate):
                    return await _live(system, load, patience=patience)
            return await _live(system, load, patience=10)
        case "ttft":
            return await _ttft(system, load)
        case "waiting":
            return await _waiting(system, load)
        case _:
            return await _again(system, load, at_once=load.kind == "storm")


async def _live(system: System, load: Load, *, patience: float = 1) -> Sample:
    """All clients are there before the first fragment is made. Raises TooLate if they are not."""
    lead = 1.0 + system.lead * load.runs + 0.005 * load.clients
    at = time.monotonic() + patience * lead
    plans = [_plan(load, at, run) for run in range(load.runs)]
    watches = await _open(system, await _begin(system, plans), load)
    if time.monotonic() > at:
        close(watches)
        raise TooLate("its clients were not connected in time")
    await asyncio.sleep(at - time.monotonic() - 0.05)
    usage = system.usage
    before = usage.cpu()
    nominal = load.fragments / load.rate if load.rate else load.limit
    await _finish(watches, at + nominal + GRACE)
    cpu = usage.cpu() - before
    close(watches)
    ended = time.monotonic()
    tally = tally_of(watches, system)
    end = ended if tally.unfinished else tally.last_arrival
    return Sample(tally, end - at, cpu, load.offered)


def _plan(load: Load, at: float, run: int) -> Plan:
    """Runs of the same pace take turns, as those of people do."""
    phase = run / load.runs / load.rate if load.rate else 0.0
    return Plan(load.fragments, load.rate, at + phase, load.limit)


async def _ttft(system: System, load: Load) -> Sample:
    """One after the other on an idle system; the first few only warm it up."""
    tally, taken = Tally(), []
    for number in range(-3, load.runs):
        prepared = await system.prepare()
        began = time.monotonic()
        watch = await system.watch(await system.begin(prepared, Plan(load.fragments)))
        await _finish([watch], began + GRACE)
        close([watch])
        one = check(watch.arrivals, numbered=system.numbered)
        if number >= 0 and not one.unfinished:
            taken.append(one.last_arrival - began)
        if number >= 0:
            tally.add(one)
    tally.latencies = taken
    return Sample(tally, sum(taken))


async def _waiting(system: System, load: Load) -> Sample:
    """Memory for each client, and the CPU that all of them add while nothing happens."""
    usage = system.usage
    far = time.monotonic() + 60 + 0.02 * load.clients
    await _begin(system, [Plan(1, at=time.monotonic())])
    paths = await _begin(system, [Plan(1, at=far) for _ in range(load.runs)])
    first = await _open(system, paths, load, watchers=1)
    empty, idle = usage.memory(), await _idle(system)
    watches = await _open(system, paths, load)
    full = usage.memory()
    await asyncio.sleep(1)
    busy = await _idle(system)
    alive = sum(not watch.done.done() for watch in watches)
    connections = await asyncio.to_thread(system.connections)
    close([*first, *watches])
    await asyncio.gather(*map(system.cancel, paths))
    if alive < len(watches):
        raise RuntimeError(f"{len(watches) - alive} of {len(watches)} clients were dropped")
    sample = Sample(Tally(), WAITED, bytes_per_client=(full - empty) / len(watches))
    sample.extra["idle_cpu_percent"] = max(0.0, busy - idle)
    if connections is not None:
        sample.extra["database_connections"] = connections
    return sample


async def _idle(system: System) -> float:
    """Percent of a core that the system uses as it is."""
    usage = system.usage
    before, began = usage.cpu(), time.monotonic()
    await asyncio.sleep(WAITED)
    return 100 * (usage.cpu() - before) / (time.monotonic() - began)


async def _again(system: System, load: Load, *, at_once: bool) -> Sample:
    """Clients that come after the fact: all at once, or one after the other."""
    [path] = await _begin(system, [Plan(load.fragments, apart=True)])
    first = await system.watch(path)
    await _finish([first], time.monotonic() + 30)
    close([first])
    usage = system.usage
    most = asyncio.create_task(_most_connections(system))
    watches: list[Watch] = []
    cpu = seconds = 0.0
    for crowd in [load.watchers] if at_once else [1] * load.watchers:
        await asyncio.sleep(FORGOTTEN)
        before, began = usage.cpu(), time.monotonic()
        came = await _gather(system.watch(path) for _ in range(crowd))
        await _finish(came, began + (60 if at_once else 30))
        cpu += usage.cpu() - before
        seconds += time.monotonic() - began
        watches += came
    most.cancel()
    close(watches)
    first_bytes = [watch.first_byte.result() - began for watch in watches]
    tally = tally_of(watches, system)
    tally.latencies.clear()  # the fragments are old
    sample = Sample(tally, seconds, cpu, first_bytes=first_bytes if at_once else [])
    sample.extra |= await most
    return sample


async def _most_connections(system: System) -> dict[str, float]:
    """Looks until cancelled, and then tells."""
    most = None
    try:
        while (now := await asyncio.to_thread(system.connections)) is not None:
            most = max(most or 0, now)
            await asyncio.sleep(0.05)
    except asyncio.CancelledError:
        pass
    return {} if most is None else {"database_connections": most}


# Clients ------------------------------------------------------------------------------------


async def _begin(system: System, plans: list[Plan]) -> list[str]:
    limit = asyncio.Semaphore(AT_ONCE)

    async def begin(plan: Plan) -> str:
        async with limit:
            return await system.begin(await system.prepare(), plan)

    return await asyncio.gather(*map(begin, plans))


async def _open(
    system: System, paths: list[str], load: Load, *, watchers: int | None = None
) -> list[Watch]:
    """Clients that have been answered. The first of each run comes before the others."""
    watches: list[Watch] = []
    for nth in range(watchers or load.watchers):
        opened = await _gather(system.watch(path) for path in paths)
        watches += opened
        if nth == 0 or len(watches) % 50 == 0:
            await asyncio.gather(*(watch.first_byte for watch in opened))
    await asyncio.gather(*(watch.first_byte for watch in watches))
    return watches


async def _gather(opening: Iterable) -> list[Watch]:  # type: ignore[type-arg]
    return list(await asyncio.gather(*opening))


async def _finish(watches: list[Watch], deadline: float) -> None:
    loop = asyncio.get_running_loop()
    left = deadline - time.monotonic()
    ends = [watch.done for watch in watches]
    try:
        async with asyncio.timeout_at(loop.time() + left):
            for end in ends:
                await asyncio.shield(end)
    except TimeoutError:
        return


def close(watches: Iterable[Watch]) -> None:
    for watch in watches:
        watch.close()


def tally_of(watches: Iterable[Watch], system: System) -> Tally:
    """All streams together. Raises NotOK if one was refused."""
    whole = Tally()
    for watch in watches:
        one = check(watch.arrivals, numbered=system.numbered)
        one.missing += bool(one.unfinished and not watch.cut)
        whole.add(one)
        watch.arrivals.clear()
    return whole
