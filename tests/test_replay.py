"""Reading the log for many at once: together where that is safe, each anew where it is not."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest
from django.db import DatabaseError

from runs import events
from runs.models import Conversation, Message, Run
from runs.querysets import MessageQuerySet
from runs.states import Status
from streaming import readings
from streaming.protocols import koda
from streaming.replay import THREADS, Replay
from tests.fakes import run_in, write
from tests.waiting import until
from tests.workers import db

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def replay() -> Iterator[Replay]:
    made = Replay()
    yield made
    made.close()


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[list[int], threading.Event]]:
    """Where each reading starts, noted when it begins; it goes on once the gate is open."""
    began: list[int] = []
    gate = threading.Event()
    page = MessageQuerySet.page

    def waiting(self, run_id, *, start, limit):
        found = page(self, run_id, start=start, limit=limit)
        began.append(start)
        assert gate.wait(10)
        return found

    monkeypatch.setattr(MessageQuerySet, "page", waiting)
    yield began, gate
    gate.set()


async def streaming_run() -> Run:
    return await db(lambda: run_in(Conversation.objects.create(), Status.STREAMING))


async def test_who_asks_before_a_reading_has_begun_shares_it_and_its_frames(replay, held):
    began, gate = held
    run = await streaming_run()
    busy = [asyncio.create_task(replay.log(run.pk, 1, 9 + n)) for n in range(THREADS)]
    await until(lambda: len(began) == THREADS, "all threads to be busy")
    asked = [asyncio.create_task(replay.log(run.pk, 0, 9)) for _ in range(50)]
    gate.set()
    readings = await asyncio.gather(*asked)
    await asyncio.gather(*busy)
    assert began.count(0) == 1
    assert [event.seq for event in readings[0].page.events] == [0, 1]
    frames = [reading.parts[0].encoded(koda.encode) for reading in readings]
    assert all(frame is frames[0] for frame in frames)


async def test_who_asks_once_a_reading_has_begun_gets_one_of_their_own(replay, held):
    began, gate = held
    run = await streaming_run()
    early = asyncio.create_task(replay.log(run.pk, 0, 9))
    await until(lambda: began == [0], "the first reading")
    await db(write, run, events.delta("news"))
    late = asyncio.create_task(replay.log(run.pk, 0, 9))
    await until(lambda: began == [0, 0], "the second reading")
    gate.set()
    assert len((await early).page.events) == 2
    assert (await late).page.events[-1].data == {"text": "news"}


async def test_somebody_who_leaves_takes_the_reading_from_nobody(replay, held):
    began, gate = held
    run = await streaming_run()
    busy = [asyncio.create_task(replay.log(run.pk, 1, 9 + n)) for n in range(THREADS)]
    await until(lambda: len(began) == THREADS, "all threads to be busy")
    leaves, stays = (asyncio.create_task(replay.log(run.pk, 0, 9)) for _ in range(2))
    await until(lambda: replay._asked, "the question")
    leaves.cancel()
    gate.set()
    assert len((await stays).page.events) == 2
    await asyncio.gather(*busy)
    assert leaves.cancelled()


async def test_an_error_comes_to_all_who_asked_and_to_nobody_later(
    replay, monkeypatch: pytest.MonkeyPatch
):
    run = await streaming_run()

    def away(*_args, **_kwargs):
        raise DatabaseError("away")

    with monkeypatch.context() as patched:
        patched.setattr(MessageQuerySet, "page", away)
        asked = [replay.log(run.pk, 0, 9) for _ in range(3)]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        assert [type(answer) for answer in answers] == [DatabaseError] * 3
    assert len((await replay.log(run.pk, 0, 9)).page.events) == 2
    assert await db(Message.objects.filter(run_id=run.pk).count) == 2


async def finished_run() -> Run:
    return await db(lambda: run_in(Conversation.objects.create(), Status.DONE))


@pytest.mark.parametrize(
    ("start", "limit"),
    [pytest.param(0, 9, id="up to the end"), pytest.param(0, 1, id="as many as were asked for")],
)
async def test_a_page_that_cannot_grow_is_read_once_for_a_crowd(replay, held, start, limit):
    began, gate = held
    gate.set()
    run = await finished_run()
    first, second = [await replay.log(run.pk, start, limit, known=True) for _ in range(2)]
    assert second is first
    assert began == [start]
    await replay.log(run.pk, start, limit)
    assert began == [start, start], "who does not know the log to go on there has to look"


async def test_a_page_that_may_grow_is_read_anew(replay, held):
    began, gate = held
    gate.set()
    run = await streaming_run()
    assert len((await replay.log(run.pk, 0, 9, known=True)).page.events) == 2
    await db(write, run, events.delta("news"))
    assert len((await replay.log(run.pk, 0, 9, known=True)).page.events) == 3
    assert began == [0, 0]


async def test_what_is_kept_is_forgotten_after_a_moment(replay, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(readings, "KEPT", 0.01)
    run = await finished_run()
    first = await replay.log(run.pk, 0, 9, known=True)
    await until(lambda: replay._kept.get((run.pk, 0, 9)) is None, "it to be forgotten")
    assert replay._kept._size == 0
    assert await replay.log(run.pk, 0, 9, known=True) is not first


async def test_no_more_is_kept_than_there_is_room_for(replay, monkeypatch: pytest.MonkeyPatch):
    run = await finished_run()
    monkeypatch.setattr(readings, "MOST_SIZE", 0)
    await db(lambda: Message.objects.filter(run_id=run.pk, seq=0).update(data={"text": "long"}))
    first = await replay.log(run.pk, 0, 9, known=True)
    assert await replay.log(run.pk, 0, 9, known=True) is not first
