"""One ordered line per reader: replay the log, follow the nudges, mend the holes.

Replaying, mending a hole, catching up after an overflow and finding a lost tail are one thing
here: reading the log from the pointer on. It happens first when the connection opens and then
whenever something says that the log has more than what arrived.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass
from uuid import UUID

from runs.events import StoredEvent
from streaming import metrics, wire
from streaming.groups import size_of
from streaming.hub import Hub, Watcher
from streaming.orderer import Orderer
from streaming.protocols import Encode
from streaming.replay import ReadLog

logger = logging.getLogger(__name__)

FIRST_PAGE, LEAST_PAGE, MOST_PAGE = 64, 8, 512
"""Events that one read brings: few at first, more while they are small."""

PAGE_SIZE = 1024 * 1024
"""Characters that a read should bring at most, as far as the last one tells."""

READ_PATIENCE = 20.0
"""Seconds to go on trying while the database is away; then the client shall try elsewhere."""


@dataclass(frozen=True, slots=True)
class LineSettings:
    """Seconds, and the number of events held for a hole."""

    ping_interval: float
    gap_wait: float
    orderer_cap: int


class Gateway:
    """Opens lines. One per process."""

    def __init__(self, *, hub: Hub, read: ReadLog, settings: LineSettings) -> None:
        self.hub = hub
        self._read = read
        self._settings = settings

    async def stream(self, run_id: UUID, *, start: int, encode: Encode) -> AsyncIterator[bytes]:
        """The run's events from number `start` on as they happen, until the terminal one.

        Lets no exception out: the client is told to reconnect instead.
        """
        yield wire.PRELUDE
        try:
            async with self.hub.watch(run_id) as watcher:
                line = Line(
                    run_id,
                    start=start,
                    encode=encode,
                    watcher=watcher,
                    hub=self.hub,
                    read=self._read,
                    settings=self._settings,
                )
                while (chunk := await line.next()) is not None:
                    yield chunk
        except Exception:
            logger.exception("run %s: stream broken off", run_id)
            yield wire.error("internal", "Something went wrong here; reconnect.")


class Line:
    """One connection's pointer, orderer and clock."""

    def __init__(
        self,
        run_id: UUID,
        *,
        start: int,
        encode: Encode,
        watcher: Watcher,
        hub: Hub,
        read: ReadLog,
        settings: LineSettings,
    ) -> None:
        self._run_id = run_id
        self._encode = encode
        self._watcher = watcher
        self._hub = hub
        self._read = read
        self._settings = settings
        self._loop = asyncio.get_running_loop()
        self._orderer: Orderer[StoredEvent] = Orderer(start)
        metrics.count_held(self._orderer)
        self._terminal = False
        self._ended = False
        self._unread = "open"
        """Why the log may have events at the pointer that will not arrive by themselves."""
        self._gap_at: int | None = None
        self._gap_since = 0.0
        self._last_sent = self._loop.time()
        self._read_failed_at: float | None = None
        self._limit = FIRST_PAGE

    async def next(self) -> bytes | None:
        """The next bytes for the client, however long they take; None when the line is over."""
        while not self._ended:
            chunk = await self._advance()
            if chunk:
                self._last_sent = self._loop.time()
                return chunk
        return None

    async def _advance(self) -> bytes:
        """One step: deliver, say goodbye, read, or wait; empty when there is nothing to send."""
        self._watcher.wake.clear()
        if chunk := self._deliver(self._watcher.take()):
            return chunk
        if self._ended:
            return b""
        if self._watcher.gone:
            return self._goodbye("gone", "This run was deleted.")
        if self._hub.draining:
            return self._goodbye("reconnect", "This server is shutting down.")
        if self._must_read():
            return await self._read_on()
        return await self._wait()

    def _goodbye(self, code: str, message: str) -> bytes:
        self._ended = True
        return wire.error(code, message)

    def _deliver(self, arrived: list[StoredEvent]) -> bytes:
        """Put what arrived in order and encode what is its turn."""
        ready = [out for event in arrived for out in self._orderer.offer(event.seq, event)]
        self._terminal = self._terminal or any(event.terminal for event in ready)
        self._ended = self._terminal and not self._orderer.gap
        self._note_gap()
        return b"".join(self._encode(self._run_id, event) for event in ready)

    def _note_gap(self) -> None:
        """Start the clock of a hole when it is first seen."""
        if not self._orderer.gap:
            self._gap_at = None
        elif self._gap_at != self._orderer.next:
            self._gap_at = self._orderer.next
            self._gap_since = self._loop.time()

    # Reading --------------------------------------------------------------------------------

    @property
    def _gap_expired(self) -> bool:
        if self._gap_at is None:
            return False
        waited = self._loop.time() - self._gap_since
        return waited >= self._settings.gap_wait or self._orderer.held > self._settings.orderer_cap

    def _must_read(self) -> bool:
        if self._watcher.overflowed:
            self._watcher.overflowed = False
            self._unread = "overflow"
        behind = self._watcher.known_next > self._orderer.next
        return bool(self._unread) or behind or self._gap_expired

    @property
    def _reason(self) -> str:
        """Why it reads, for the metrics."""
        if self._gap_expired:
            return "held" if self._orderer.held > self._settings.orderer_cap else "gap"
        return self._unread or "behind"

    async def _read_on(self) -> bytes:
        """Read a page from the pointer on."""
        mending = self._gap_expired
        before = self._orderer.next
        metrics.LOG_READS.labels(self._reason).inc()
        try:
            page = await self._read(self._run_id, before, self._limit)
        except Exception as error:  # noqa: BLE001 - the client keeps its line meanwhile
            return await self._read_failed(error)
        self._read_failed_at = None
        self._unread = "page" if len(page) == self._limit else ""
        self._adapt(page)
        chunk = self._deliver(page)
        stuck = self._orderer.next == before
        if stuck and mending:
            logger.error("run %s: event %d is nowhere", self._run_id, before)
            return self._goodbye("gap", f"Event {before} is missing; reconnect.")
        if stuck:
            self._watcher.known_next = 0
        return chunk

    def _adapt(self, page: list[StoredEvent]) -> None:
        """Read less at once where events are big: a page is held in memory as a whole."""
        size = sum(size_of(event.data) for event in page)
        if size > PAGE_SIZE:
            self._limit = max(LEAST_PAGE, self._limit // 4)
        elif size < PAGE_SIZE // 4:
            self._limit = min(MOST_PAGE, self._limit * 2)

    async def _read_failed(self, error: Exception) -> bytes:
        """The database is away: the client keeps its line for a while."""
        now = self._loop.time()
        if self._read_failed_at is None:
            self._read_failed_at = now
            logger.warning("run %s: log not read, trying again: %s", self._run_id, error)
        if now - self._read_failed_at > READ_PATIENCE:
            return self._goodbye("unavailable", "The log cannot be read; reconnect.")
        await asyncio.sleep(0.5)
        return self._ping_if_due()

    # Waiting --------------------------------------------------------------------------------

    async def _wait(self) -> bytes:
        """Until something happens, a hole is old enough, or the silence calls for a ping."""
        until = self._last_sent + self._settings.ping_interval
        if self._gap_at is not None:
            until = min(until, self._gap_since + self._settings.gap_wait)
        try:
            async with asyncio.timeout_at(until):
                await self._watcher.wake.wait()
        except TimeoutError:
            return self._ping_if_due()
        return b""

    def _ping_if_due(self) -> bytes:
        silence = self._loop.time() - self._last_sent
        return wire.PING if silence >= self._settings.ping_interval else b""
