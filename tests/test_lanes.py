"""Agents on threads of their own: nobody else waits for one that blocks."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator

import pytest

from runs import services
from runs.agents import Turn
from runs.agents.registry import LoadedAgent
from runs.lanes import HIGH, Lanes
from runs.states import Status
from tests.conftest import Change
from tests.fakes import RecordingPort, assert_sound
from tests.waiting import until
from tests.workers import Stage, agents, asked, db, reaches, visitor_conversation, working

TURN = Turn(run_id="r", attempt=1, inputs=["hello"])


async def collect(lanes: Lanes, respond) -> list[object]:
    crossing = lanes.open(respond, TURN)
    items = [item async for item in crossing]
    await crossing.aclose()
    return items


async def test_items_cross_complete_and_in_order_however_many():
    async def respond(turn: Turn) -> AsyncIterator[object]:
        for n in range(HIGH * 5):
            yield n

    lanes = Lanes()
    assert await collect(lanes, respond) == list(range(HIGH * 5))
    lanes.close()


async def test_an_agent_waits_for_a_reader_that_is_slow():
    said = 0

    async def respond(turn: Turn) -> AsyncIterator[object]:
        nonlocal said
        for n in range(HIGH * 5):
            said = n
            yield n

    lanes = Lanes()
    crossing = lanes.open(respond, TURN)
    assert await anext(crossing) == 0
    await until(lambda: said >= HIGH, "the agent to run ahead")
    assert said <= HIGH + 1
    assert [item async for item in crossing] == list(range(1, HIGH * 5))
    await crossing.aclose()
    lanes.close()


async def test_what_the_agent_raises_comes_out_after_what_it_said():
    async def respond(turn: Turn) -> AsyncIterator[object]:
        yield "one"
        raise ValueError("broken")

    lanes = Lanes()
    crossing = lanes.open(respond, TURN)
    assert await anext(crossing) == "one"
    with pytest.raises(ValueError, match="broken"):
        await anext(crossing)
    await crossing.aclose()
    lanes.close()


async def test_closing_cancels_the_agent_and_its_lane_is_used_again():
    cancelled = threading.Event()

    async def respond(turn: Turn) -> AsyncIterator[object]:
        yield threading.current_thread().name
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    lanes = Lanes()
    names = []
    for _ in range(2):
        crossing = lanes.open(respond, TURN)
        names.append(await anext(crossing))
        await crossing.aclose()
        assert cancelled.is_set()
    assert names[0] == names[1] != threading.current_thread().name
    lanes.close()


async def test_a_call_that_is_closed_before_it_began_ends_at_once():
    async def respond(turn: Turn) -> AsyncIterator[object]:
        yield "never read"

    lanes = Lanes()
    for _ in range(20):
        crossing = lanes.open(respond, TURN)
        async with asyncio.timeout(2):
            await crossing.aclose()
    lanes.close()


async def test_an_agent_that_wants_to_exit_ends_its_call_and_not_the_lane():
    async def respond(turn: Turn) -> AsyncIterator[object]:
        yield "one"
        raise SystemExit(0)

    lanes = Lanes()
    for _ in range(2):
        crossing = lanes.open(respond, TURN)
        assert await anext(crossing) == "one"
        with pytest.raises(SystemExit):
            await anext(crossing)
        await crossing.aclose()
    lanes.close()


@pytest.mark.django_db(transaction=True)
async def test_a_tool_that_blocks_its_loop_delays_no_other_run(
    port: RecordingPort, koda: Change, monkeypatch: pytest.MonkeyPatch
):
    release = threading.Event()

    async def blocking(turn: Turn) -> AsyncIterator[object]:
        yield "before "
        release.wait(30)
        yield "after"

    stage = Stage()
    loaded = {"blocking": LoadedAgent("blocking", "", blocking), **agents(scripted=stage.respond)}
    monkeypatch.setattr("tests.workers.agents", lambda **named: loaded)
    blocked_in, spoken_in = await visitor_conversation(), await visitor_conversation()
    await db(type(blocked_in).objects.filter(pk=blocked_in.pk).update, agent="blocking")
    blocked = (await db(services.submit, blocked_in, "x")).run
    async with working(port):
        await reaches(blocked, Status.STREAMING)
        spoken = (await db(services.submit, spoken_in, "y")).run
        began = time.monotonic()
        for word in ("a ", "b ", "c "):
            stage.say.put_nowait(word)
        stage.say.put_nowait(None)
        done = await reaches(spoken, Status.DONE)
        assert time.monotonic() - began < 2.5, "about a poll, not the tool's time"
        assert done.output == "a b c "
        release.set()
        assert (await reaches(blocked, Status.DONE)).output == "before after"
    await db(assert_sound, blocked)


@pytest.mark.django_db(transaction=True)
async def test_an_agent_that_ignores_its_cancellation_is_left_behind_the_fence(
    port: RecordingPort, koda: Change, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("runs.turn.STOP_PATIENCE", 0.2)
    release = threading.Event()

    async def deaf(turn: Turn) -> AsyncIterator[object]:
        yield "before "
        release.wait(30)
        yield "too late"

    loaded = {"scripted": LoadedAgent("scripted", "", deaf)}
    monkeypatch.setattr("tests.workers.agents", lambda **named: loaded)
    _, run = await asked("x")
    async with working(port) as worker:
        await reaches(run, Status.STREAMING)
        await db(services.cancel, run.pk)
        await until(lambda: not worker._held, "the worker to let go of the run")
        release.set()
    await db(assert_sound, run)
    cancelled = await db(type(run).objects.get, pk=run.pk)
    assert cancelled.output == "before "
