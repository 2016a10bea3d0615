"""What the benchmark asks of a system."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import ClassVar, TypeVar

from bench.client import Api, Watch, get, watch
from bench.fragments import Plan
from bench.processes import Process, Usage, free_port
from tests.servers import Server

Kind = TypeVar("Kind", bound="System")


class Unsupported(Exception):
    """This system cannot do that load; the message says why."""


class System:
    """Processes that stream runs over HTTP."""

    name: ClassVar[str]
    title: ClassVar[str]
    persists: ClassVar[bool] = False
    closes: ClassVar[bool] = True
    """It ends a stream after the last fragment."""
    numbered: ClassVar[bool] = False
    """Its events bear the ids 0, 1, 2 …"""
    lead: ClassVar[float] = 0.01
    """Seconds that the start of a run may take, with room for a busy machine."""
    cannot: ClassVar[dict[str, str]] = {}
    """Loads it cannot do, with the reason."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = free_port()
        self.processes: list[Process] = []
        self.servers: list[Server] = []
        self.api = Api(self.port)

    def start(self) -> None:
        """Install what it needs and start it. Raises whatever stands in the way."""
        raise NotImplementedError

    async def prepare(self) -> str:
        """Whatever comes before a run and is no part of it (a conversation)."""
        return ""

    async def begin(self, prepared: str, plan: Plan) -> str:
        """Start a run; the path of its stream."""
        raise NotImplementedError

    async def cancel(self, path: str) -> None:
        """End the run of this stream, where that is possible."""

    def connections(self) -> int | None:
        """Connections of the web process to its database, where that is a question."""
        return None

    async def watch(self, path: str) -> Watch:
        return await watch(self.port, get(path, self.headers), closes=self.closes)

    @property
    def headers(self) -> dict[str, str]:
        return {}

    @property
    def usage(self) -> Usage:
        """All of its processes."""
        return Usage(part.pid for part in (*self.processes, *self.servers))

    def program(self, *command: str | Path, **environment: str) -> Process:
        log = self.directory / f"{self.name}-{self.port}-{len(self.processes)}.log"
        process = Process(command, log=log, environment=environment)
        self.processes.append(process)
        return process

    def server(self, server: Server) -> str:
        """Start a database or the like; its URL."""
        server.start()
        self.servers.append(server)
        return server.url

    def listening(self) -> bool:
        return Api(self.port).answers()

    def stop(self) -> None:
        for process in reversed(self.processes):
            process.stop()
        for server in reversed(self.servers):
            server.close()


@asynccontextmanager
async def started(kind: type[Kind], directory: Path) -> AsyncIterator[Kind]:
    """A system of its own for a while."""
    system = kind(directory)
    try:
        system.start()
        yield system
    finally:
        system.stop()
