"""A gateway with a log in memory and readers, for the tests of the gateway."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import aclosing, asynccontextmanager
from uuid import UUID, uuid4

from runs import events
from runs.events import StoredEvent
from runs.paging import cut
from runs.projection import Projection
from runs.states import Status
from streaming import groups
from streaming.gateway import Gateway
from streaming.hub import Hub
from streaming.line import LineSettings
from streaming.protocols import koda
from streaming.replay import Progress
from streaming.snapshots import Snapshots
from streaming.stretch import Encode, Reading
from tests.waiting import until

QUICK = LineSettings(ping_interval=30, gap_wait=0.15, orderer_cap=64)
END = events.run_completed(finish_reason="stop", usage=None)


class Log:
    """Stands where the database is."""

    def __init__(self) -> None:
        self.run_id = uuid4()
        self.events: list[StoredEvent] = []
        self.reads: list[int] = []
        self.folds: list[int] = []
        self.broken = False
        self.gate = asyncio.Event()
        self.gate.set()
        self.deleted = False
        self.hidden: set[int] = set()
        self.collapsed: list[StoredEvent] | None = None
        """What the log is since it was archived."""

    def write(self, *new: events.Event) -> list[StoredEvent]:
        start = len(self.events)
        stored = [StoredEvent(start + i, e.type, e.data) for i, e in enumerate(new)]
        self.events += stored
        return stored

    def words(self, count: int) -> list[StoredEvent]:
        start = len(self.events)
        return self.write(*(events.delta(f"w{start + i} ") for i in range(count)))

    async def read(self, run_id: UUID, start: int, limit: int, known: bool) -> Reading:
        assert run_id == self.run_id
        self.reads.append(start)
        if self.broken:
            raise ConnectionError("database away")
        rows = self.events if self.collapsed is None else self.collapsed
        page = [event for event in rows if event.seq >= start][:limit]
        await self.gate.wait()
        there = [event for event in page if event.seq not in self.hidden]
        return Reading.of(run_id, cut(there))

    async def extend(self, projection: Projection) -> StoredEvent | None:
        self.folds.append(projection.next_seq)
        if self.broken:
            raise ConnectionError("database away")
        rows = self.events[projection.next_seq :]
        await self.gate.wait()
        projection.extend(rows)
        return None if projection.too_large else projection.snapshot()

    async def progress(self, run_ids: Collection[UUID]) -> dict[UUID, Progress]:
        if self.deleted:
            return {}
        return {self.run_id: Progress(len(self.events), Status.STREAMING)}


class Reader:
    """A client: collects what the stream gives."""

    def __init__(
        self, gateway: Gateway, log: Log, start: int = 0, encode: Encode = koda.encode
    ) -> None:
        self.raw: list[bytes] = []
        self._stream = gateway.stream(log.run_id, start=start, reach=len(log.events), encode=encode)
        self.task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async with aclosing(self._stream) as chunks:  # type: ignore[type-var]
            async for chunk in chunks:
                self.raw.append(chunk)

    @property
    def frames(self) -> list[str]:
        return [f for f in b"".join(self.raw).decode().split("\n\n") if f]

    @property
    def ids(self) -> list[int]:
        return [int(f.split("\n")[0][4:]) for f in self.frames if f.startswith("id: ")]

    def said(self, text: str) -> bool:
        return any(text in frame for frame in self.frames)

    async def end(self) -> None:
        async with asyncio.timeout(10):
            await self.task


@asynccontextmanager
async def serving(
    log: Log, settings: LineSettings = QUICK, *, sweep: float = 30, cap: int = 1_000_000
) -> AsyncIterator[Gateway]:
    the_hub = Hub(progress=log.progress, sweep_interval=sweep)
    the_hub.start()
    snapshots = Snapshots(cap=cap, extend=log.extend)
    gateway = Gateway(hub=the_hub, read=log.read, snapshots=snapshots, settings=settings)
    try:
        yield gateway
        await until(lambda: the_hub.watchers == 0, "all watchers to be gone")
    finally:
        await the_hub.stop()
        await flush_layer()


async def flush_layer() -> None:
    """Close what the channel layer has open on this event loop.

    The Redis client may swallow a cancel that meets the end of a read, and then its layer waits
    for the reading task for ever. Being cancelled itself it cancels that task once more.
    """
    async with asyncio.timeout(1):
        await groups.layer().flush()


async def publish(log: Log, *stored: StoredEvent) -> None:
    message = groups.events_message(log.run_id, stored)
    await groups.send([(groups.run_group(log.run_id), message)])


async def watching(reader: Reader, seq: int) -> None:
    await until(lambda: seq in reader.ids, f"event {seq}")


async def publish_when_watching(log: Log, reader: Reader) -> None:
    """Event 0, so that the reader is known to be past its replay."""
    await publish(log, *log.words(1))
    await watching(reader, 0)
    await until(lambda: log.reads, "the replay")
