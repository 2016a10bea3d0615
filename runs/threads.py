"""The visible seam between asyncio and the synchronous database code."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier
from typing import ParamSpec, TypeVar

from django.db import InterfaceError, InternalError, OperationalError, connection

logger = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")


PASSING_SQLSTATES = frozenset({"08", "25", "40", "53", "55", "57", "58"})
"""Classes of SQLSTATE that speak of the connection, the server or a lock (Postgres, appendix A)."""


def passes(error: Exception) -> bool:
    """Whether waiting helps: it is the connection, the server or a lock, not what was asked."""
    if not isinstance(error, OperationalError | InterfaceError | InternalError):
        return False
    state = sqlstate(error)
    return state is None or state[:2] in PASSING_SQLSTATES


def sqlstate(error: Exception) -> str | None:
    """What the server calls this error of Django's; None where there was no answer, or SQLite."""
    return getattr(error.__cause__, "sqlstate", None)


class DatabaseThreads:
    """A few threads for database work, each with a connection of its own.

    `keep` leaves the connection open between calls, for a process that writes all the time;
    without it every call gives its connection back. After an error it is always given back, so
    that the next call finds a healthy one.
    """

    def __init__(self, name: str, *, threads: int, keep: bool) -> None:
        self._threads = threads
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._keep = keep

    async def __call__(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run `work` on one of the threads; its exceptions come back."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._executor, partial(self._run, work, args, kwargs))

    def _run(
        self, work: Callable[..., R], args: tuple[object, ...], kwargs: dict[str, object]
    ) -> R:
        try:
            result = work(*args, **kwargs)
        except BaseException:
            connection.close()
            raise
        if not self._keep:
            connection.close()
        return result

    def close(self) -> None:
        """Let running work end and close the connections; nothing may be asked afterwards."""
        together = Barrier(self._threads)  # so that each thread gets one of the closing calls

        def close_connection() -> None:
            together.wait()
            connection.close()

        for _ in range(self._threads):
            self._executor.submit(close_connection)
        self._executor.shutdown(wait=True)


async def patiently(work: Callable[[], Awaitable[R]]) -> R:
    """Do database work, again and again while the database is away."""
    delay = 0.1
    while True:
        try:
            return await work()
        except Exception as error:
            if not passes(error):
                raise
            logger.warning("database away, trying again: %s", error)
            await asyncio.sleep(delay)
            delay = min(1.0, delay * 2)
