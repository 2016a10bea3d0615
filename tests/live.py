"""The real commands as processes, each system on a fresh database of its own.

    pytest_plugins = ["tests.live"]

    async def test_something(live): ...  # one running system for the whole session
    async def test_another(launch):
        system = launch(KODA_PING_INTERVAL="0.2")  # a system of the test's own

Without DATABASE_URL and REDIS_URL a system is one `manage.py serve` on SQLite; with them (see
`tests.services`) it is a gateway and a worker on Postgres and Redis. `launch(split=…)` asks for
the other shape: gateway and worker apart on SQLite, or one process on the services. What the
processes logged is shown with a test that fails.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from tests.live_client import Visitor
from tests.live_databases import ROOT, Databases
from tests.program import Program
from tests.servers import HOST, free_port

AGENTS = ("words", "rounds", "patient", "silent", "scribe", "failing", "hostile")


class System:
    """A gateway and a worker, in one process or apart, and the database that they share."""

    def __init__(self, databases: Databases, directory: Path, environment: dict[str, str]) -> None:
        self.directory = directory
        self.database = databases.create()
        self.programs: list[Program] = []
        self.redis_url = databases.redis_url()
        self._environment = environment

    def start(self, *, split: bool, daphne: bool = False) -> None:
        if split:
            self.gateway = self.add_daphne() if daphne else self.add("gateway")
            self.worker = self.add("worker")
        else:
            self.gateway = self.worker = self.add("serve")
        for program in self.programs:
            program.wait()

    def add(self, command: str, *arguments: str) -> Program:
        """One more, launched; a server gets a port of its own."""
        name = f"{command}-{len(self.programs) + 1}"
        port = 0 if command == "worker" else free_port()
        where = ("--host", HOST, "--port", str(port)) if port else ()
        return self._launch(name, "manage.py", command, *where, *arguments, port=port)

    def add_daphne(self) -> Program:
        """A gateway on daphne, started as its documentation says."""
        port = free_port()
        where = ("-b", HOST, "-p", str(port))
        return self._launch("daphne", "-m", "daphne", *where, "koda.asgi:application", port=port)

    def _launch(self, name: str, *command: str, port: int) -> Program:
        program = Program(
            name,
            *command,
            environment=self.environment_of(name),
            log=self.directory / f"{name}.log",
            port=port,
        )
        self.programs.append(program)
        program.launch()
        return program

    def environment_of(self, name: str) -> dict[str, str]:
        """What a process of this name runs with."""
        inherited = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("KODA_", "OPENAI_", "DJANGO_")) and key != "REDIS_URL"
        }
        redis = {"REDIS_URL": self.redis_url} if self.redis_url else {}
        return {
            **inherited,
            **redis,
            "DATABASE_URL": self.database.url,
            "PGAPPNAME": name,
            "DJANGO_SECRET_KEY": "a key for tests",
            "KODA_ALLOW_ANONYMOUS": "1",
            "KODA_AGENTS": ",".join(f"{agent}=tests.live_agents.{agent}" for agent in AGENTS),
            "KODA_DRAIN_TIMEOUT": "1",
            "KODA_WORKER_CONCURRENCY": "60",
            "KODA_MAX_ACTIVE_RUNS": "1000",
            "KODA_MESSAGES_PER_MINUTE": "100000",
            **self._environment,
        }

    def close(self) -> None:
        """End all processes and drop the database."""
        for program in self.programs:
            program.terminate()
        for program in self.programs:
            program.stop()
        self.database.close()

    def visitor(
        self, gateway: Program | None = None, *, receive_buffer: int | None = None
    ) -> Visitor:
        """A new browser, in front of the first gateway or of the one given.

        `receive_buffer` bytes are all that its machine takes before it reads.
        """
        return Visitor((gateway or self.gateway).url, receive_buffer=receive_buffer)

    def token(self, user: str) -> str:
        """A new API token of this user, made by the command."""
        made = subprocess.run(
            [sys.executable, "manage.py", "create_token", user, "--create-user"],
            cwd=ROOT,
            env=self.environment_of("create_token"),
            check=True,
            capture_output=True,
            text=True,
        )
        return made.stdout.strip()

    def gate(self) -> Path:
        """Where a scripted agent waits until the test calls `touch()`."""
        return self.directory / f"gate-{uuid4().hex}"

    def status(self, run_id: str) -> str:
        """A run's status, from the database."""
        sql = "SELECT status FROM koda_runs WHERE id = %s"
        [(status,)] = self.database.rows(sql, UUID(run_id).hex)
        return str(status)


class Launcher:
    """Starts systems for one test: `launch(split=True, KODA_LEASE="2")`."""

    def __init__(self, databases: Databases, new_directory: Callable[[str], Path]) -> None:
        self.systems: list[System] = []
        self._databases = databases
        self._new_directory = new_directory

    def __call__(
        self, *, split: bool | None = None, daphne: bool = False, **environment: str
    ) -> System:
        """A started system. `split` says whether gateway and worker are processes apart."""
        system = System(self._databases, self._new_directory("system"), environment)
        self.systems.append(system)
        system.start(split=self._databases.services if split is None else split, daphne=daphne)
        return system

    def close(self) -> None:
        for system in self.systems:
            system.close()


@pytest.fixture(scope="session")
def databases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Databases]:
    # Told to end, end like after a Ctrl-C: with all that was started here.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.closing(Databases(tmp_path_factory.mktemp("databases"))) as made:
        yield made
    signal.signal(signal.SIGTERM, before)


@pytest.fixture(scope="session")
def live(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """The system that tests share; each brings its own visitors."""
    with contextlib.closing(Launcher(databases, tmp_path_factory.mktemp)) as launcher:
        yield launcher()


@pytest.fixture
def launch(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launcher]:
    with contextlib.closing(Launcher(databases, tmp_path_factory.mktemp)) as launcher:
        yield launcher


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Function,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show with a failure what the processes had to say."""
    report = yield
    used = getattr(item, "funcargs", {}).values()
    launched = [system for one in used if isinstance(one, Launcher) for system in one.systems]
    shared = [one for one in used if isinstance(one, System)]
    for program in [program for system in shared + launched for program in system.programs]:
        if report.when == "setup":
            program.mark()
        elif report.failed:
            report.sections.append((f"log of {program.name}", program.tail()))
    return report
