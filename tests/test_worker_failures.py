"""Runs of a real worker that go wrong: errors, further tries, limits, a missing agent."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from runs import services
from runs.agents import PermanentError, ToolStarted, TransientError, Turn
from runs.states import Status
from tests.conftest import Change
from tests.fakes import RecordingPort, assert_sound, log, types
from tests.waiting import until
from tests.workers import Stage, asked, db, reaches, working

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    ("raised", "code"),
    [
        (PermanentError("no", code="content_filter"), "content_filter"),
        (PermanentError("no"), "permanent_error"),
        (PermanentError("no", code=503), "503"),
        (ValueError("oops\0"), "agent_error"),
        (SystemExit(0), "agent_error"),
    ],
)
async def test_an_error_fails_the_run_at_once_and_keeps_the_text(
    port: RecordingPort, raised: BaseException, code: str
):
    stage = Stage()
    conversation, run = await asked()
    async with working(port, scripted=stage.respond):
        stage.say.put_nowait("partial ")
        stage.say.put_nowait(ToolStarted("t", "find"))
        stage.say.put_nowait(raised)
        failed = await reaches(run, Status.FAILED)
        assert failed.error["code"] == code
        again = await db(services.submit, conversation, "and now?")
        stage.say.put_nowait(None)
        await reaches(again.run, Status.DONE)
    assert failed.output == "partial "
    assert (await db(types, run))[-3:] == ["tool_started", "tool_failed", "run_failed"]
    await db(assert_sound, run)


async def test_a_transient_error_is_tried_again_and_says_so(port: RecordingPort):
    stage = Stage()
    _, run = await asked()
    async with working(port, scripted=stage.respond):
        stage.say.put_nowait("half ")
        stage.say.put_nowait(TransientError("busy", code="overloaded"))
        await until(lambda: len(stage.turns) == 2, "the second try")
        stage.say.put_nowait("whole")
        stage.say.put_nowait(None)
        done = await reaches(run, Status.DONE)
    assert (done.output, done.tries, done.attempt, done.error) == ("whole", 2, 2, None)
    restarted = next(e for e in await db(log, run) if e.type == "run_restarted")
    assert (restarted.data["reason"], restarted.data["attempt"]) == ("retry", 2)
    await db(assert_sound, run)


async def test_transient_errors_end_in_failed_when_the_tries_are_used_up(
    port: RecordingPort, koda: Change
):
    koda(max_attempts=2, sweep_interval=0.2)
    stage = Stage()
    _, run = await asked()
    async with working(port, scripted=stage.respond):
        for _ in range(2):
            stage.say.put_nowait("try ")
            stage.say.put_nowait(TransientError("busy", code="overloaded"))
        failed = await reaches(run, Status.FAILED)
    assert (failed.error, failed.tries) == ({"code": "overloaded", "message": "busy"}, 2)
    assert failed.output == "try "
    await db(assert_sound, run)


async def test_a_silent_agent_fails_after_the_idle_limit(port: RecordingPort, koda: Change):
    koda(idle_timeout=0.3)
    stage = Stage()
    _, run = await asked()
    async with working(port, scripted=stage.respond):
        stage.say.put_nowait("one ")
        failed = await reaches(run, Status.FAILED)
    assert failed.error["code"] == "idle_timeout"
    assert failed.output == "one "
    assert stage.cancelled == 1


async def test_an_agent_that_never_stops_talking_fails_after_the_time_limit(
    port: RecordingPort, koda: Change
):
    koda(run_timeout=0.4)

    async def scripted(turn: Turn) -> AsyncIterator[str]:
        while True:
            yield "blah "
            await until(lambda: True, "a moment")

    _, run = await asked()
    async with working(port, scripted=scripted):
        failed = await reaches(run, Status.FAILED)
    assert failed.error["code"] == "run_timeout"
    assert failed.output.startswith("blah ")
    await db(assert_sound, run)


async def test_an_agent_that_is_not_there_fails_the_run_and_nothing_else(port: RecordingPort):
    stage = Stage()
    _, run = await asked()
    async with working(port, other=stage.respond):
        failed = await reaches(run, Status.FAILED)
    assert failed.error["code"] == "unknown_agent"
