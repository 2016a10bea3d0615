"""The system under chaos: two gateways, two workers, and what they share."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import psycopg

from tests.chaos import model
from tests.live import Launcher, System
from tests.live_databases import Databases
from tests.program import Program
from tests.servers import Postgres, Redis, postgres, redis
from tests.stub_model import StubModel

LEASE, SWEEP, DRAIN = 3.0, 1.0, 1.0
"""Seconds."""
SETTINGS = {
    "KODA_LEASE": f"{LEASE:g}",
    "KODA_HEARTBEAT": "1",
    "KODA_SWEEP_INTERVAL": f"{SWEEP:g}",
    "KODA_DRAIN_TIMEOUT": f"{DRAIN:g}",
    "KODA_MAX_ATTEMPTS": "100",  # workers die far too often here for anybody to give up
    "KODA_DEFAULT_AGENT": "openai",
    "KODA_OPENAI_MODEL": "m",
    "OPENAI_API_KEY": "none",
    "DJANGO_SETTINGS_MODULE": "tests.chaos.settings",
}


@dataclass
class Site:
    system: System
    stub: StubModel
    postgres: Postgres | None
    redis: Redis | None
    switch: Path
    """Says how the channel layer behaves."""
    locks: dict[str, asyncio.Lock] = field(default_factory=dict)

    @property
    def gateways(self) -> list[Program]:
        return [program for program in self.system.programs if program.port]

    @property
    def workers(self) -> list[Program]:
        return [program for program in self.system.programs if not program.port]

    def lock(self, name: str) -> asyncio.Lock:
        """One fault at a time for each process."""
        return self.locks.setdefault(name, asyncio.Lock())

    def held_by(self, program: Program) -> tuple[str, ...]:
        """The runs that a worker holds; nothing while the database is away."""
        sql = "SELECT id FROM koda_runs WHERE claimed_by LIKE %s"
        with contextlib.suppress(psycopg.Error):
            found = self.system.database.rows(sql, f"%/{program.pid}/%")
            return tuple(str(run_id) for (run_id,) in found)
        return ()

    def thaw(self) -> None:
        """Wake whatever was left frozen."""
        servers = [server for server in (self.postgres, self.redis) if server and server.running]
        for process in [*servers, *(one for one in self.system.programs if not one.ended())]:
            os.kill(process.pid, signal.SIGCONT)


@contextlib.contextmanager
def running(directory: Path, *, seed: int, services: bool = True) -> Iterator[Site]:
    """A started site. Without services: SQLite, and delivery at the speed of the sweep."""
    (directory / "databases").mkdir()
    switch = directory / "layer"
    switch.write_text("")
    with contextlib.ExitStack() as stack:
        own_postgres = stack.enter_context(postgres()) if services else None
        own_redis = stack.enter_context(redis()) if services else None
        databases = Databases(
            directory / "databases",
            server=own_postgres.url if own_postgres else "",
            redis=own_redis.url if own_redis else "",
        )
        stack.enter_context(contextlib.closing(databases))
        stub = stack.enter_context(StubModel(model.reply))
        launcher = Launcher(databases, _directories(directory))
        stack.enter_context(contextlib.closing(launcher))
        system = launcher(
            split=True,
            **SETTINGS,
            OPENAI_BASE_URL=stub.base_url,
            CHAOS_SEED=str(seed),
            CHAOS_SWITCH=str(switch),
        )
        others = [system.add("gateway"), system.add("worker")]
        for program in others:
            program.wait()
        site = Site(system, stub, own_postgres, own_redis, switch)
        try:
            yield site
        finally:
            site.thaw()
            for server in (own_postgres, own_redis):
                if server and not server.running:
                    server.start()


def _directories(directory: Path):
    numbers = count()

    def made(name: str) -> Path:
        new = directory / f"{name}-{next(numbers)}"
        new.mkdir()
        return new

    return made
