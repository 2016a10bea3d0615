"""The streams of this process: each is a line, in pieces that a server can take."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import closing
from uuid import UUID

from streaming import wire
from streaming.hub import Hub
from streaming.line import Line, LineSettings, Sources
from streaming.replay import ReadLog
from streaming.snapshots import Snapshots
from streaming.stretch import Encode

logger = logging.getLogger(__name__)

PIECE = 64 * 1024
"""Bytes that the server is given at once: what it takes for a client that does not read."""


class Gateway:
    """Opens lines. One per process."""

    def __init__(
        self, *, hub: Hub, read: ReadLog, snapshots: Snapshots, settings: LineSettings
    ) -> None:
        self.hub = hub
        self._sources = Sources(hub, read, snapshots)
        self._settings = settings

    async def stream(
        self, run_id: UUID, *, start: int, reach: int = 0, encode: Encode
    ) -> AsyncGenerator[bytes, None]:
        """The run's events from number `start` on as they happen, until the terminal one.

        The log is known to reach to before number `reach`, which decides about a snapshot.
        Lets no exception out: the client is told to reconnect instead.
        """
        yield wire.PRELUDE
        try:
            async with self.hub.watch(run_id) as watcher:
                line = Line(
                    run_id,
                    start=start,
                    reach=reach,
                    encode=encode,
                    watcher=watcher,
                    sources=self._sources,
                    settings=self._settings,
                )
                with closing(line):
                    while (chunk := await line.next()) is not None:
                        for at in range(0, len(chunk), PIECE):
                            yield chunk[at : at + PIECE]
        except Exception:
            logger.exception("run %s: stream broken off", run_id)
            yield wire.error("internal", "Something went wrong here; reconnect.")
