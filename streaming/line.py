"""One ordered line per reader: replay the log, follow the nudges, mend the holes.

Replaying, mending a hole, catching up after an overflow and finding a lost tail are one thing
here: reading the log from the pointer on. It happens first when the connection opens and then
whenever something says that the log has more than what arrived.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from runs.events import EventType, StoredEvent
from runs.paging import Paging
from streaming import metrics, wire
from streaming.hub import Hub
from streaming.orderer import Orderer
from streaming.replay import ReadLog
from streaming.snapshots import Snapshots
from streaming.stretch import Encode, Reading, Stretch
from streaming.watcher import Watcher

logger = logging.getLogger(__name__)

READ_PATIENCE = 20.0
"""Seconds to go on trying while the database is away; then the client shall try elsewhere."""


@dataclass(frozen=True, slots=True)
class LineSettings:
    """Seconds, and the number of events held for a hole."""

    ping_interval: float
    gap_wait: float
    orderer_cap: int


@dataclass(frozen=True, slots=True)
class Sources:
    """Where a line gets its events from."""

    hub: Hub
    read: ReadLog
    snapshots: Snapshots


class Line:
    """One connection's pointer, orderer and clock."""

    def __init__(
        self,
        run_id: UUID,
        *,
        start: int,
        reach: int,
        encode: Encode,
        watcher: Watcher,
        sources: Sources,
        settings: LineSettings,
    ) -> None:
        self._run_id = run_id
        self._reach = reach
        self._encode = encode
        self._watcher = watcher
        self._hub = sources.hub
        self._read = sources.read
        self._snapshots = sources.snapshots
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
        self._paging = Paging()
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_at = 0.0

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
        if chunk := b"".join([self._pass_on(stretch) for stretch in self._watcher.take()]):
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

    def _pass_on(self, stretch: Stretch) -> bytes:
        """Send what arrived as it is if it is just what comes next; else put it in order first."""
        if not self._orderer.pass_over(stretch.start, stretch.end):
            return self._deliver(stretch.events)
        self._terminal = self._ended = self._terminal or stretch.terminal
        return stretch.encoded(self._encode)

    def _deliver(self, arrived: Sequence[StoredEvent]) -> bytes:
        """Put what arrived in order and encode what is its turn."""
        return self._send([out for one in arrived for out in self._orderer.offer(one.seq, one)])

    def _jump(self, snapshot: StoredEvent, frame: bytes) -> bytes:
        """Let `snapshot` stand for what was not sent yet, up to its number."""
        return frame + self._send(self._orderer.skip_to(snapshot.seq + 1))

    def _send(self, ready: list[StoredEvent]) -> bytes:
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
        """Read a page from the pointer on; at the start, a snapshot if it is all too much."""
        mending = self._gap_expired
        before = self._orderer.next
        metrics.LOG_READS.labels(self._reason).inc()
        try:
            if self._unread == "open" and (snapshot := await self._instead_of_replay()):
                return snapshot
            known = before < self._reach
            reading = await self._read(self._run_id, before, self._paging.limit, known)
        except Exception as error:  # noqa: BLE001 - the client keeps its line meanwhile
            return await self._read_failed(error)
        self._read_failed_at = None
        self._unread = "page" if self._paging.more(reading.page) else ""
        chunk = self._deliver_reading(reading)
        stuck = self._orderer.next == before
        if stuck and mending:
            logger.error("run %s: event %d is nowhere", self._run_id, before)
            return self._goodbye("gap", f"Event {before} is missing; reconnect.")
        if stuck:
            self._watcher.known_next = 0
        return chunk

    async def _instead_of_replay(self) -> bytes:
        """A snapshot, if what the log has for a new connection is too much."""
        snapshot = await self._snapshots.instead_of(self._run_id, self._orderer.next, self._reach)
        if snapshot is None:
            return b""
        self._read_failed_at = None
        self._unread = "page"
        return self._jump(snapshot.event, snapshot.frame(self._encode))

    def _deliver_reading(self, reading: Reading) -> bytes:
        """What was archived begins with a snapshot, wherever the reader is."""
        events = reading.page.events
        if not events or events[0].type != EventType.SNAPSHOT:
            return b"".join([self._pass_on(part) for part in reading.parts])
        first, *rest = events
        return self._jump(first, self._encode(self._run_id, first)) + self._deliver(rest)

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
        if ping := self._ping_if_due():
            return ping
        until = self._last_sent + self._settings.ping_interval
        if self._gap_at is not None:
            until = min(until, self._gap_since + self._settings.gap_wait)
        self._set_alarm(until)
        await self._watcher.wake.wait()
        return b""

    def _set_alarm(self, at: float) -> None:
        """Wake up then, or earlier: an alarm that is set already may stand."""
        if self._alarm is not None and self._alarm_at <= at:
            return
        self.close()
        self._alarm_at = at
        self._alarm = self._loop.call_at(at, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        self._watcher.wake.set()

    def close(self) -> None:
        """Nothing wakes this line any more."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _ping_if_due(self) -> bytes:
        silence = self._loop.time() - self._last_sent
        return wire.PING if silence >= self._settings.ping_interval else b""
