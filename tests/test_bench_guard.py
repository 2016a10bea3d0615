"""What one event costs on its way, against a floor that is measured beside it.

Calls are counted, not seconds: a busy machine changes nothing. The bounds leave room for other
versions of Python and Django; doing a step once more for each event or client does not fit in.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from itertools import count

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext

from bench.counting import Calls
from runs import events
from runs.emitter import Emitter
from runs.errors import KodaError
from runs.events import StoredEvent
from runs.models import Conversation, Message, Run
from runs.writes import Append
from streaming import wire
from streaming.protocols import koda as protocol
from tests.fakes import LEASE, run_in
from tests.reading import Log, publish, serving
from tests.test_emitter import new_log

WATCHERS, EVENTS = 40, 25
RUNS, ROUNDS = 40, 10


class Crowd:
    """Readers of many streams; knows when all of them have got something."""

    def __init__(self, streams: Sequence[AsyncIterator[bytes]]) -> None:
        self._left = 0
        self._all = asyncio.Event()
        self.frames = [0] * len(streams)
        self.tasks = [asyncio.create_task(self._read(n, s)) for n, s in enumerate(streams)]

    async def _read(self, number: int, stream: AsyncIterator[bytes]) -> None:
        async with aclosing(stream) as chunks:  # type: ignore[type-var]
            async for chunk in chunks:
                if chunk.startswith(b"id: "):
                    self.frames[number] += 1
                    self._left -= 1
                    if not self._left:
                        self._all.set()

    def expect(self) -> None:
        self._left = len(self.frames)
        self._all.clear()

    async def all_have_it(self) -> None:
        async with asyncio.timeout(30):
            await self._all.wait()


@asynccontextmanager
async def crowd(streams: Sequence[AsyncIterator[bytes]]) -> AsyncIterator[Crowd]:
    gathered = Crowd(streams)
    yield gathered
    for task in gathered.tasks:
        task.cancel()
    await asyncio.gather(*gathered.tasks, return_exceptions=True)


async def calls_of_the_gateway() -> float:
    """For each frame that a watcher gets."""
    log = Log()
    async with serving(log) as gateway:
        streams = [
            gateway.stream(log.run_id, start=0, encode=protocol.encode) for _ in range(WATCHERS)
        ]
        log.words(1)
        async with crowd(streams) as readers:
            readers.expect()
            await readers.all_have_it()  # the replay
            with Calls() as calls:
                for event in log.words(EVENTS):
                    readers.expect()
                    await publish(log, event)
                    await readers.all_have_it()
    assert readers.frames == [EVENTS + 1] * WATCHERS
    return calls.count / (WATCHERS * EVENTS)


async def calls_of_queues() -> float:
    """The floor: a queue for each client, an encoding for each client."""
    queues: list[asyncio.Queue[StoredEvent]] = [asyncio.Queue() for _ in range(WATCHERS)]

    async def stream(queue: asyncio.Queue[StoredEvent]) -> AsyncIterator[bytes]:
        while True:
            event = await queue.get()
            yield wire.frame(seq=event.seq, event=event.type, data=event.data)

    async with crowd([stream(queue) for queue in queues]) as readers:
        with Calls() as calls:
            for event in Log().words(EVENTS):
                readers.expect()
                for queue in queues:
                    queue.put_nowait(event)
                await readers.all_have_it()
    return calls.count / (WATCHERS * EVENTS)


async def test_a_frame_through_the_gateway_costs_about_what_a_queue_would():
    gateway, floor = await calls_of_the_gateway(), await calls_of_queues()
    assert gateway <= 2.2 * floor, f"{gateway:.1f} calls a frame, {floor:.1f} with queues"


async def test_a_fragment_through_the_emitter_costs_a_few_calls():
    shown: list[StoredEvent] = []

    async def write(batch: Sequence[Append]) -> list[KodaError | None]:
        return [None] * len(batch)

    emitter = Emitter(
        write=write,
        show=lambda run_id, stored: shown.extend(stored),
        flush_fragments=40,
        flush_interval=0,
    )
    logs = [new_log() for _ in range(RUNS)]
    flushing = asyncio.create_task(emitter.run())
    with Calls() as calls:
        for _ in range(ROUNDS):
            for log in logs:
                await emitter.emit(log, "word ")
            for log in logs:
                await emitter.settle(log)
    flushing.cancel()
    assert len(shown) == RUNS * ROUNDS
    with Calls() as floor:
        for event in [events.delta("word ") for _ in shown]:
            wire.frame(seq=0, event=event.type, data=event.data)
    each, least = calls.count / len(shown), floor.count / len(shown)
    assert each <= 9 * least, f"{each:.1f} calls a fragment, {least:.1f} to encode it"


@pytest.mark.django_db
def test_a_flush_is_one_statement_on_postgres_and_no_more_than_thrice_the_orm_elsewhere():
    runs = [run_in(Conversation.objects.create(visitor_key="v"), "streaming") for _ in range(RUNS)]
    seqs = count(max(run.next_seq for run in runs))
    Run.objects.update(next_seq=next(seqs))

    def flush(seq: int) -> None:
        said = [events.delta("word ")]
        batch = [Append(run.pk, run.attempt, "w", seq - 1, said, to=None) for run in runs]
        assert Run.objects.append(batch, lease=LEASE) == [None] * RUNS

    def plainly(seq: int) -> None:
        for run in runs:
            Run.objects.filter(pk=run.pk).update(next_seq=seq, lease_expires_at=Now() + LEASE)
        rows = [Message(run=run, seq=seq, type="delta", data={"text": "word "}) for run in runs]
        Message.objects.bulk_create(rows)

    own, floor = cost_of(flush, seqs), cost_of(plainly, seqs)
    if connection.vendor == "postgresql":
        assert (own.statements, floor.statements) == (1, RUNS + 1)
    most = 0.2 if connection.vendor == "postgresql" else 3.0
    assert own.calls <= most * floor.calls, f"{own.calls} calls a flush, {floor.calls} by the ORM"


@dataclass(frozen=True)
class Cost:
    calls: int
    statements: int


def cost_of(write: Callable[[int], None], seqs: Iterator[int]) -> Cost:
    """Of one write, when what is done once has been done."""
    write(next(seqs))
    with Calls() as calls:
        write(next(seqs))
    with CaptureQueriesContext(connection) as statements:
        write(next(seqs))
    return Cost(calls.count, len(statements))
