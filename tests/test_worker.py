"""A real worker on the real database: claiming, correcting, cancelling, finishing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from django.core.cache import cache

from runs import services
from runs.agents import Turn, Usage
from runs.models import Run
from runs.states import Status
from tests.fakes import RecordingPort, assert_sound, log, types
from tests.waiting import until
from tests.workers import Stage, asked, db, reaches, visitor_conversation, working

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_message_is_answered_and_every_event_published_after_it_was_stored(
    port: RecordingPort,
):
    async def scripted(turn: Turn) -> AsyncIterator[object]:
        for word in turn.inputs[0].split():
            yield f"{word} "
        yield Usage(1, 2)

    conversation = await visitor_conversation()
    submitted = await db(services.submit, conversation, "one two three")
    async with working(port, scripted=scripted):
        done = await reaches(submitted.run, Status.DONE)

    assert (done.output, done.usage) == (
        "one two three ",
        {"input_tokens": 1, "output_tokens": 2},
    )
    await db(assert_sound, done)
    assert [event for _, event in port.published] == await db(log, done)


async def test_several_runs_go_on_at_once_but_one_conversation_waits(port: RecordingPort):
    stage = Stage()
    here, there = await visitor_conversation(), await visitor_conversation()
    first = (await db(services.submit, here, "first")).run
    second = (await db(services.submit, here, "second", on_busy="queue")).run
    other = (await db(services.submit, there, "other")).run

    async with working(port, scripted=stage.respond):
        await until(lambda: len(stage.turns) == 2, "two runs at once")
        assert sorted(stage.turns) == [["first"], ["other"]]
        assert (await db(Run.objects.get, pk=second.pk)).status == Status.PENDING
        for _ in range(3):
            stage.say.put_nowait(None)
        for run in (first, second, other):
            await reaches(run, Status.DONE)
    assert sorted(stage.turns) == [["first"], ["other"], ["second"]]


async def test_a_correction_restarts_the_answer_within_moments_while_text_flows(
    port: RecordingPort, caplog: pytest.LogCaptureFixture
):
    stage = Stage()
    conversation, run = await asked("my order")
    async with working(port, scripted=stage.respond):
        stage.say.put_nowait("looking ")
        await reaches(run, Status.STREAMING)
        assert (await db(services.submit, conversation, "exchange it")).merged
        loop = asyncio.get_running_loop()
        asked_at = loop.time()
        stage.say.put_nowait("up ")
        await until(lambda: len(stage.turns) == 2, "the rerun")
        assert loop.time() - asked_at < 0.9, "the mark is quicker than the watch query"
        stage.say.put_nowait("exchanged")
        stage.say.put_nowait(None)
        done = await reaches(run, Status.DONE)

    assert stage.turns == [["my order"], ["my order", "exchange it"]]
    assert stage.cancelled == 1
    assert done.output == "exchanged"
    restarted = next(e for e in await db(log, run) if e.type == "run_restarted")
    assert restarted.data == {
        "reason": "merged",
        "attempt": 1,
        "inputs": ["my order", "exchange it"],
    }
    line = f"rerunning with merged input, continuing from seq {restarted.seq}"
    assert line in caplog.text
    await db(assert_sound, run)


async def test_a_correction_reaches_a_silent_agent_even_without_a_mark(port: RecordingPort):
    stage = Stage()
    conversation, run = await asked()
    async with working(port, scripted=stage.respond):
        stage.say.put_nowait("thinking ")
        await reaches(run, Status.STREAMING)
        assert (await db(services.submit, conversation, "correction")).merged
        cache.clear()
        await until(lambda: len(stage.turns) == 2, "the rerun", timeout=4)
        stage.say.put_nowait(None)
        await reaches(run, Status.DONE)
    assert stage.turns[1] == ["question", "correction"]


async def test_a_correction_that_lands_just_before_the_end_is_answered(
    port: RecordingPort, monkeypatch: pytest.MonkeyPatch
):
    """The run is about to be written as done; the message commits first; no mark survives."""
    stage = Stage()
    conversation, run = await asked()
    append, joined = Run.objects.append, []

    def message_first(batch, **kwargs):
        if any(entry.ending for entry in batch) and not joined:
            joined.append(services.submit(conversation, "wait").merged)
            cache.clear()
        return append(batch, **kwargs)

    monkeypatch.setattr(Run.objects, "append", message_first)
    async with working(port, scripted=stage.respond):
        stage.say.put_nowait("first answer")
        stage.say.put_nowait(None)
        await until(lambda: len(stage.turns) == 2, "the rerun")
        stage.say.put_nowait("second answer")
        stage.say.put_nowait(None)
        done = await reaches(run, Status.DONE)

    assert joined == [True]
    assert done.output == "second answer"
    assert stage.turns[1] == ["question", "wait"]
    await db(assert_sound, run)


async def test_a_correction_that_lands_just_after_the_end_gets_a_run_of_its_own(
    port: RecordingPort, monkeypatch: pytest.MonkeyPatch
):
    """The run is written as done; the message comes before its worker has heard of that."""
    stage = Stage()
    conversation, run = await asked()
    append, late = Run.objects.append, []

    def message_after(batch, **kwargs):
        answers = append(batch, **kwargs)
        if any(entry.ending for entry in batch) and not late:
            late.append(services.submit(conversation, "wait"))
        return answers

    monkeypatch.setattr(Run.objects, "append", message_after)
    async with working(port, scripted=stage.respond):
        stage.say.put_nowait("first answer")
        stage.say.put_nowait(None)
        await reaches(run, Status.DONE)
        await until(lambda: late, "the message")
        assert not late[0].merged
        stage.say.put_nowait("second answer")
        stage.say.put_nowait(None)
        done = await reaches(late[0].run, Status.DONE)

    assert done.output == "second answer"
    assert stage.turns == [["question"], ["wait"]]


async def test_cancel_stops_a_silent_agent_within_two_seconds(port: RecordingPort):
    stage = Stage()
    _, run = await asked()
    async with working(port, scripted=stage.respond):
        stage.say.put_nowait("thinking ")
        await reaches(run, Status.STREAMING)
        cancelled = await db(services.cancel, run.pk)
        await until(lambda: stage.cancelled == 1, "the agent to be stopped", timeout=2)
    assert (cancelled.status, cancelled.output) == (Status.CANCELLED, "thinking ")
    assert (await db(types, run))[-1] == "run_cancelled"
    await db(assert_sound, run)


async def test_a_deleted_conversation_stops_its_agent(port: RecordingPort):
    stage = Stage()
    conversation, run = await asked()
    async with working(port, scripted=stage.respond):
        stage.say.put_nowait("one ")
        await reaches(run, Status.STREAMING)
        await db(services.delete, conversation.pk)
        await until(lambda: stage.cancelled == 1, "the agent to be stopped", timeout=2)
    assert await db(log, run) == []


async def test_the_next_turn_is_told_what_came_before(port: RecordingPort):
    histories: list[list[object]] = []

    async def scripted(turn: Turn) -> AsyncIterator[object]:
        histories.append(turn.history)
        yield f"answer {len(turn.history)}"

    conversation = await visitor_conversation()
    async with working(port, scripted=scripted):
        for text in ("first", "second"):
            run = (await db(services.submit, conversation, text)).run
            await reaches(run, Status.DONE)
    assert histories == [
        [],
        [{"role": "user", "content": "first"}, {"role": "assistant", "content": "answer 0"}],
    ]
