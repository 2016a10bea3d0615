"""One session of chaos: set up, let it happen, look at what came out."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.chaos import bounds, checker, site
from tests.chaos.bounds import Bound
from tests.chaos.checker import Violation
from tests.chaos.evidence import Evidence, stored
from tests.chaos.harm import Harm
from tests.chaos.people import Person
from tests.chaos.plan import KINDS, Fault, faults
from tests.chaos.site import Site
from tests.waiting import until


@dataclass(frozen=True, slots=True)
class Outcome:
    evidence: Evidence
    violations: list[Violation]
    bounds: list[Bound]


def hold(
    directory: Path,
    *,
    seed: int,
    duration: float,
    people: int,
    services: bool = True,
    kinds: Sequence[str] = tuple(KINDS),
    hurry: float = 1.0,
) -> Outcome:
    """Let it happen for `duration` seconds, and as long as it takes to come to an end."""
    plan = faults(seed, kinds=kinds, hurry=hurry)
    evidence = Evidence()
    with site.running(directory, seed=seed, services=services) as made:
        asyncio.run(_live(made, evidence, plan, seed=seed, duration=duration, people=people))
        evidence.runs = stored(made.system.database)
        evidence.deaths += [
            f"{program.name} ended with {program.code}"
            for program in made.system.programs
            if program.ended()
        ]
    found = checker.violations(evidence)
    times = bounds.measured(evidence, lease=site.LEASE, sweep=site.SWEEP, drain=site.DRAIN)
    return Outcome(evidence, found, times)


async def _live(
    made: Site,
    evidence: Evidence,
    plan: Iterator[Fault],
    *,
    seed: int,
    duration: float,
    people: int,
) -> None:
    harm = Harm(made, evidence)
    crowd = [Person(made, evidence, seed=seed, number=number) for number in range(people)]
    await asyncio.gather(*(person.arrive() for person in crowd))
    ends = time.monotonic() + duration
    async with asyncio.TaskGroup() as group:
        group.create_task(harm.carry_out(plan, ends=ends), name="faults")
        for person in crowd:
            group.create_task(person.live(ends), name="person")
    await until(lambda: not open_runs(made), "the end of every run", timeout=60)


def open_runs(made: Site) -> int:
    with contextlib.suppress(Exception):
        sql = "SELECT count(*) FROM koda_runs WHERE finished_at IS NULL"
        [(number,)] = made.system.database.rows(sql)
        return int(number)
    return 1
