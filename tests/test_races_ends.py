"""Who wins when a run ends, is cancelled, or is corrected twice: staged like the other races."""

from __future__ import annotations

import pytest
from django.core.cache import cache
from django.db import OperationalError

from runs import marks, services
from runs.models import Conversation, Run
from runs.states import Status
from tests.fakes import LEASE, RecordingPort, assert_sound, log, run_in
from tests.racing import expire, started, together
from tests.waiting import until
from tests.workers import Stage, db, reaches, visitor_conversation, working

pytestmark = pytest.mark.django_db(transaction=True)


# Cancel -------------------------------------------------------------------------------------


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_cancel_against_the_end_has_one_winner_and_tells_the_truth(
    port: RecordingPort, monkeypatch: pytest.MonkeyPatch, moment: str
):
    stage, answers = Stage(), []
    append = Run.objects.append

    def staged(batch, **kwargs):
        ending = any(entry.ending for entry in batch)
        if ending and moment == "before":
            answers.append(services.cancel(batch[0].run_id))
        result = append(batch, **kwargs)
        if ending and moment == "after":
            answers.append(services.cancel(batch[0].run_id))
        return result

    monkeypatch.setattr(Run.objects, "append", staged)
    async with working(port, scripted=stage.respond) as worker:
        _, run = await started(port, stage)
        stage.say.put_nowait(None)
        await until(lambda: answers and not worker._held, "the end")
    final = await db(Run.objects.get, pk=run.pk)
    assert final.status == (Status.CANCELLED if moment == "before" else Status.DONE)
    assert answers[0].status == final.status
    assert [e.type for e in await db(log, run)].count("run_cancelled") == (moment == "before")
    await db(assert_sound, run)


def test_cancel_against_merge_never_leaves_a_message_without_an_answer(
    conversation: Conversation, port: RecordingPort
):
    for _ in range(5):
        run = run_in(conversation, Status.STREAMING)
        submitted, cancelled = together(
            lambda: services.submit(conversation, "correction"),
            lambda: services.cancel(run.pk),  # noqa: B023
        )
        assert cancelled.status == Status.CANCELLED
        if submitted.merged:
            assert submitted.run == run
        else:
            assert submitted.run.status == Status.PENDING
            services.cancel(submitted.run.pk)
        assert_sound(run)


def test_cancel_against_take_over_ends_the_run(conversation: Conversation, port: RecordingPort):
    for _ in range(5):
        run = run_in(conversation, Status.STREAMING)
        expire(run)
        together(
            lambda: Run.objects.take_over(run.pk, worker="w2", lease=LEASE),  # noqa: B023
            lambda: services.cancel(run.pk),  # noqa: B023
        )
        run.refresh_from_db()
        assert run.status == Status.CANCELLED
        assert_sound(run)


def test_cancel_works_with_no_worker_alive(conversation: Conversation, port: RecordingPort):
    run = run_in(conversation, Status.STREAMING)
    expire(run)
    assert services.cancel(run.pk).status == Status.CANCELLED
    assert not Run.objects.expired().exists()


async def test_cancel_between_the_claim_and_the_first_call_stops_the_run(
    port: RecordingPort, monkeypatch: pytest.MonkeyPatch
):
    stage = Stage()
    claim = Run.objects.claim

    def cancelled_at_once(**kwargs):
        claimed = claim(**kwargs)
        if claimed is not None:
            services.cancel(claimed.run.pk)
        return claimed

    monkeypatch.setattr(Run.objects, "claim", cancelled_at_once)
    conversation = await visitor_conversation()
    run = (await db(services.submit, conversation, "question")).run
    async with working(port, scripted=stage.respond) as worker:
        await reaches(run, Status.CANCELLED)
        stage.say.put_nowait("late ")
        await until(lambda: not worker._held, "the worker to let go", timeout=4)
    assert [event.type for event in await db(log, run)] == ["run_started", "run_cancelled"]


# Commits and marks --------------------------------------------------------------------------


async def test_a_commit_that_succeeded_although_the_connection_died_is_not_repeated(
    port: RecordingPort, monkeypatch: pytest.MonkeyPatch
):
    stage, died = Stage(), []
    append = Run.objects.append

    def dies_after_commit(batch, **kwargs):
        answers = append(batch, **kwargs)
        if len(died) < 2:
            died.append(batch)
            raise OperationalError("server closed the connection unexpectedly")
        return answers

    monkeypatch.setattr(Run.objects, "append", dies_after_commit)
    async with working(port, scripted=stage.respond):
        _, run = await started(port, stage)
        stage.say.put_nowait("two")
        stage.say.put_nowait(None)
        done = await reaches(run, Status.DONE)
    assert len(died) == 2
    assert done.output == "one two"
    assert [event for _, event in port.published] == await db(log, run)
    await db(assert_sound, run)


async def test_a_stale_mark_restarts_nothing(port: RecordingPort):
    stage = Stage()
    async with working(port, scripted=stage.respond):
        _, run = await started(port, stage)
        marks.set_mark(run.pk, 1)
        for word in ("two ", "three "):
            stage.say.put_nowait(word)
        stage.say.put_nowait(None)
        done = await reaches(run, Status.DONE)
    assert (done.output, len(stage.turns)) == ("one two three ", 1)


async def test_a_mark_that_is_set_twice_restarts_once(port: RecordingPort):
    stage = Stage()
    async with working(port, scripted=stage.respond):
        conversation, run = await started(port, stage)
        assert (await db(services.submit, conversation, "correction")).merged
        marks.set_mark(run.pk, 2)
        await until(lambda: len(stage.turns) == 2, "the rerun", timeout=4)
        marks.set_mark(run.pk, 2)
        for word in ("a ", "b "):
            stage.say.put_nowait(word)
        stage.say.put_nowait(None)
        done = await reaches(run, Status.DONE)
    assert (done.output, len(stage.turns)) == ("a b ", 2)
    await db(assert_sound, run)


async def test_two_corrections_in_a_row_both_count(port: RecordingPort):
    stage = Stage()
    async with working(port, scripted=stage.respond):
        conversation, run = await started(port, stage)
        for text in ("first", "second"):
            assert (await db(services.submit, conversation, text)).merged
        await until(lambda: stage.turns[-1] == ["question", "first", "second"], "both inputs")
        stage.say.put_nowait("fine")
        stage.say.put_nowait(None)
        done = await reaches(run, Status.DONE)
    assert done.output == "fine"


def test_a_lost_cache_loses_no_correction(conversation: Conversation, port: RecordingPort):
    run = run_in(conversation, Status.STREAMING)
    services.submit(conversation, "correction")
    cache.clear()
    run.refresh_from_db()
    assert run.input_count == 2
