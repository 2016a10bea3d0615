"""Koda itself, through its own commands and its API."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import asdict
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import ClassVar

import psycopg

from bench.client import Api, Watch, get, watch
from bench.fragments import Plan
from bench.processes import HOST, ROOT, DurablePostgres, Redis, free_port
from bench.systems.base import System

ENVIRONMENT = {
    "DJANGO_SECRET_KEY": "a key for measurements",
    "KODA_AGENTS": "bench=bench.agent.bench",
    "KODA_WORKER_CONCURRENCY": "600",
    "KODA_IDLE_TIMEOUT": "600",
    "KODA_MAX_ACTIVE_RUNS": "100000",
    "KODA_MESSAGES_PER_MINUTE": "1000000",
    "KODA_REPLAY_CAP": "100000",
}
"""Only the limits are raised: they are there to keep loads such as these away."""


class Koda(System):
    """A gateway, a worker, Postgres and Redis."""

    name = "koda"
    title = "Koda"
    persists = True
    lead = 0.04
    numbered = True
    workers: ClassVar[int] = 1

    def start(self) -> None:
        self.postgres = DurablePostgres()
        self.environment = {
            **ENVIRONMENT,
            "DATABASE_URL": self.server(self.postgres),
            "REDIS_URL": self.server(Redis()),
        }
        self.manage("migrate", "--verbosity=0")
        self.token = self.manage("create_token", "bench", "--create-user").strip()
        self.api = Api(self.port, self.headers)
        python = sys.executable
        for _ in range(self.workers):
            self.program(python, "manage.py", "worker", **self.environment)
        for worker in list(self.processes):
            worker.wait_until(partial(worker.has_said, "runs at once"))
        for port in self.ports:
            gateway = self.program(
                python, "manage.py", "gateway", "--host", HOST, "--port", str(port),
                **self.environment, PGAPPNAME="gateway",
            )  # fmt: skip
            gateway.wait_until(Api(port).answers)

    @property
    def ports(self) -> list[int]:
        return [self.port]

    def manage(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env={"PATH": os.environ.get("PATH", os.defpath), **self.environment},
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    async def prepare(self) -> str:
        made = await self.api.call("POST", "/api/conversations", {"agent": "bench"})
        return str(made["id"])

    async def begin(self, prepared: str, plan: Plan) -> str:
        body = {"text": "go", "metadata": asdict(plan)}
        path = f"/api/conversations/{prepared}/messages"
        return str((await self.api.call("POST", path, body))["stream_url"])

    async def cancel(self, path: str) -> None:
        await self.api.call("POST", path.removesuffix("stream") + "cancel")

    def connections(self) -> int:
        """How many connections the gateway has to Postgres."""
        with psycopg.connect(self.postgres.url, autocommit=True) as connection:
            found = connection.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'gateway'"
            ).fetchone()
        return int(found[0]) if found else 0


class KodaTwice(Koda):
    """Two of each; streams are spread over the gateways."""

    title = "Koda, two gateways and two workers"
    workers = 2

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._second = free_port()
        self._next = cycle(self.ports)

    @property
    def ports(self) -> list[int]:
        return [self.port, self._second]

    async def watch(self, path: str) -> Watch:
        return await watch(next(self._next), get(path, self.headers), closes=self.closes)
