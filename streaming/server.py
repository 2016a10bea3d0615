"""The recommended server: uvicorn, with the one thing added that streams need at shutdown."""

import asyncio
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn

from runs.leaving import leave_within
from streaming.runtime import gateway

GRACE = 3
"""Seconds that requests have to end after the streams were told to."""

PATIENCE = 7.0
"""Seconds after a signal at which the process ends, whatever its threads wait for."""


class Server(uvicorn.Server):
    """uvicorn waits for open streams for ever; here they are told to end first."""

    on_started: Callable[[int], object] | None = None
    """Called with the port once connections are accepted."""

    patience = PATIENCE
    """More for a process that does something else as well."""

    def end(self) -> None:
        """End streams politely, then the server. Call on its event loop."""
        gateway().hub.drain()
        self.should_exit = True

    def _told_to_end(self) -> None:
        leave_within(self.patience)
        self.end()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen to the channel layer before the first client comes: its start takes a moment."""
        gateway()
        await super().startup(sockets)
        if self.started and self.on_started is not None:
            self.on_started(self.servers[0].sockets[0].getsockname()[1])

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """SIGINT and SIGTERM end the server; the process then exits as its command says."""
        loop = asyncio.get_running_loop()
        for sig in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(sig, self._told_to_end)
        try:
            yield
        finally:
            for sig in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(sig)


def make_server(application: str, *, host: str, port: int) -> Server:
    """A server for this dotted application path. Port 0 takes a free one."""
    config = uvicorn.Config(
        application,
        host=host,
        port=port,
        loop="uvloop",
        http="httptools",
        ws="none",
        lifespan="off",
        access_log=False,
        log_config=None,
        timeout_graceful_shutdown=GRACE,
        server_header=False,
    )
    return Server(config)
