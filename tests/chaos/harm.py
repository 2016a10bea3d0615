"""The faults. Each returns once what it hit is back, and says when that was."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence

import psutil
import psycopg

from tests.chaos.evidence import Evidence, Happened
from tests.chaos.plan import Fault
from tests.chaos.site import Site
from tests.program import Program
from tests.servers import Server
from tests.waiting import until

EXIT_WITHIN = 30.0
"""Seconds after which a process that was told to stop counts as hanging."""


async def wait(seconds: float) -> None:
    """Until something is due, without looking at the clock all the time."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await asyncio.Event().wait()


class Harm:
    def __init__(self, site: Site, evidence: Evidence) -> None:
        self._site = site
        self._evidence = evidence

    async def carry_out(self, plan: Iterator[Fault], *, ends: float) -> None:
        """One fault after the other, until `ends` (monotonic); returns when all is back."""
        under_way: set[asyncio.Task[None]] = set()
        async with asyncio.TaskGroup() as group:
            for fault in plan:
                if under_way and not fault.overlaps:
                    await asyncio.wait(under_way)
                    under_way.clear()
                await wait(fault.gap)
                if time.monotonic() + fault.lasts > ends:
                    return
                under_way.add(group.create_task(self._do(fault), name=fault.kind))

    async def _do(self, fault: Fault) -> None:
        role, _, what = fault.kind.partition(" ")
        programs = {"worker": self._site.workers, "gateway": self._site.gateways}.get(role)
        program = programs[fault.target] if programs else None
        name = program.name if program else role
        async with self._site.lock(name):
            held = await self._held_by(program) if role == "worker" and program else ()
            began = time.time()
            if program:
                note = await self._to_process(what, program, fault.lasts)
            else:
                note = await getattr(self, f"_{fault.kind.replace(' ', '_')}")(fault.lasts)
            happened = Happened(fault.kind, name, began, time.time(), held, note or "")
        self._evidence.happened.append(happened)

    async def _held_by(self, program: Program) -> Sequence[str]:
        """Asked on a thread: whoever freezes Postgres meanwhile must be able to thaw it."""
        if self._site.postgres is None:
            return self._site.held_by(program)
        return await asyncio.to_thread(self._site.held_by, program)

    # Processes of the project ---------------------------------------------------------------

    async def _to_process(self, what: str, program: Program, lasts: float) -> str | None:
        does: dict[str, Callable[[Program, float], Awaitable[str | None]]] = {
            "killed": self._kill,
            "frozen": self._freeze,
            "stopped": self._stop,
        }
        if program.ended():
            self._evidence.deaths.append(f"{program.name} had ended with {program.code}")
        return await does[what](program, lasts)

    async def _kill(self, program: Program, lasts: float) -> None:
        await asyncio.to_thread(program.kill)
        await wait(lasts)
        await asyncio.to_thread(program.start)

    async def _freeze(self, program: Program, lasts: float) -> None:
        os.kill(program.pid, signal.SIGSTOP)
        try:
            await wait(lasts)
        finally:
            os.kill(program.pid, signal.SIGCONT)

    async def _stop(self, program: Program, lasts: float) -> str:
        asked = time.monotonic()
        program.terminate()
        try:
            await until(program.ended, f"the end of {program.name}", timeout=EXIT_WITHIN)
        except AssertionError:
            self._evidence.deaths.append(f"{program.name} did not end within {EXIT_WITHIN:g} s")
            await asyncio.to_thread(program.kill)
        took = time.monotonic() - asked
        if program.code:
            self._evidence.deaths.append(f"{program.name} ended with {program.code} after SIGTERM")
        await wait(lasts)
        await asyncio.to_thread(program.start)
        return f"{took:.2f}"

    # Services -------------------------------------------------------------------------------

    @property
    def _redis(self) -> Server:
        assert self._site.redis is not None, "no Redis here"
        return self._site.redis

    @property
    def _postgres(self) -> Server:
        assert self._site.postgres is not None, "no Postgres here"
        return self._site.postgres

    async def _redis_killed(self, lasts: float) -> None:
        await asyncio.to_thread(self._redis.kill)
        await wait(lasts)
        await asyncio.to_thread(self._redis.start)

    async def _redis_restarted(self, lasts: float) -> None:
        await asyncio.to_thread(self._redis.stop)
        await asyncio.to_thread(self._redis.start)

    async def _redis_frozen(self, lasts: float) -> None:
        os.kill(self._redis.pid, signal.SIGSTOP)
        await wait(lasts)
        os.kill(self._redis.pid, signal.SIGCONT)

    async def _redis_flushed(self, lasts: float) -> None:
        await self._ask_redis("FLUSHALL")

    async def _redis_clients_cut(self, lasts: float) -> None:
        await self._ask_redis("CLIENT KILL TYPE normal\r\nCLIENT KILL TYPE pubsub")

    async def _ask_redis(self, commands: str) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._redis.port)
        writer.write(f"{commands}\r\n".encode())
        await writer.drain()
        await reader.readline()
        writer.close()

    async def _postgres_restarted(self, lasts: float) -> None:
        await asyncio.to_thread(self._postgres.stop)
        await wait(lasts)
        await asyncio.to_thread(self._postgres.start)

    async def _postgres_killed(self, lasts: float) -> None:
        await asyncio.to_thread(self._postgres.kill)
        await wait(lasts)
        await asyncio.to_thread(self._postgres.start)

    async def _postgres_frozen(self, lasts: float) -> None:
        server = psutil.Process(self._postgres.pid)
        family = [server, *server.children()]  # it cannot have more of them from here on
        for process in family:
            process.suspend()
        try:
            await wait(lasts)
        finally:
            for process in reversed(family):
                process.resume()

    async def _postgres_sessions_cut(self, lasts: float) -> None:
        await asyncio.to_thread(self._cut_sessions)

    def _cut_sessions(self) -> None:
        sql = (
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        with psycopg.connect(self._site.system.database.url, autocommit=True) as connection:
            connection.execute(sql)

    # Messages -------------------------------------------------------------------------------

    async def _messages_disordered(self, lasts: float) -> None:
        await self._switched("disorder", lasts)

    async def _last_messages_lost(self, lasts: float) -> None:
        await self._switched("tails", lasts)

    async def _switched(self, mode: str, lasts: float) -> None:
        self._site.switch.write_text(mode)
        await wait(lasts)
        self._site.switch.write_text("")
