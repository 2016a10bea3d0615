"""Who wins, staged: each test wraps one seam so that the other side acts at the worst moment."""

from __future__ import annotations

import pytest

from runs import services
from runs.agents import TransientError
from runs.lease import Lease
from runs.models import Conversation, Run
from runs.states import Status
from tests.conftest import Change
from tests.fakes import LEASE, RecordingPort, assert_sound, log, run_in
from tests.racing import expire, keeper, started, take_over_soon, together, until_released
from tests.waiting import until
from tests.workers import Stage, db, reaches, working

pytestmark = pytest.mark.django_db(transaction=True)


# Take-over ----------------------------------------------------------------------------------


async def test_a_zombie_that_wakes_after_the_take_over_writes_nothing_more(
    port: RecordingPort, caplog: pytest.LogCaptureFixture
):
    stage = Stage()
    async with working(port, scripted=stage.respond) as worker:
        _, run = await started(port, stage)
        await db(expire, run)
        taken = await db(Run.objects.take_over, run.pk, worker="w2", lease=LEASE)
        assert taken is not None
        before = await db(log, run)
        stage.say.put_nowait("late ")
        await until(lambda: not worker._held, "the zombie to give up")
        assert await db(log, run) == before
    assert stage.cancelled == 1
    assert "late write refused" in caplog.text
    await db(assert_sound, run)


def test_two_sweeps_at_once_take_a_run_once(transactional_db: None, conversation: Conversation):
    run = run_in(conversation, Status.STREAMING)
    for attempt in range(2, 8):
        expire(run)
        first, took_first, _ = keeper("w2", attempts=99)
        second, took_second, _ = keeper("w3", attempts=99)
        together(first.sweep, second.sweep)
        took = took_first + took_second
        assert [claimed.run.attempt for claimed in took] == [attempt]
        assert_sound(run)


def test_two_sweeps_at_once_give_a_run_up_once(transactional_db: None, conversation: Conversation):
    run = run_in(conversation, Status.STREAMING)
    expire(run)
    first, _, one = keeper("w2", attempts=1)
    second, _, two = keeper("w3", attempts=1)
    together(first.sweep, second.sweep)
    assert [ended.run.status for ended in one + two] == ["failed"]
    assert_sound(run)


def test_a_sweep_takes_no_run_from_its_own_worker(conversation: Conversation):
    run = run_in(conversation, Status.STREAMING)
    expire(run)
    own, took, _ = keeper("w1", held=[Lease(run.pk, 1, held_since=0.0)])
    own.sweep()
    assert took == []


def test_a_keeper_at_rest_takes_nothing_over(conversation: Conversation):
    run = run_in(conversation, Status.STREAMING)
    expire(run)
    resting, took, _ = keeper()
    resting.rest()
    resting.sweep()
    assert took == []


def test_runs_on_their_last_try_are_taken_one_at_a_time_and_others_at_once(
    transactional_db: None,
):
    runs = [
        run_in(Conversation.objects.create(visitor_key=str(n)), Status.STREAMING) for n in range(4)
    ]
    for run in runs:
        expire(run)
    Run.objects.filter(pk__in=[run.pk for run in runs[:3]]).update(tries=2)
    careful, took, _ = keeper(free=10, attempts=3)
    careful.sweep()
    assert sorted(claimed.run.tries for claimed in took) == [2, 3]


def test_a_run_that_cannot_be_taken_over_does_not_stop_the_sweep(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch
):
    runs = [
        run_in(Conversation.objects.create(visitor_key=str(n)), Status.STREAMING) for n in range(2)
    ]
    for run in runs:
        expire(run)
    take_over = Run.objects.take_over

    def breaks_on_the_first(run_id, **kwargs):
        if run_id == runs[0].pk:
            raise ValueError("a log that cannot be read")
        return take_over(run_id, **kwargs)

    monkeypatch.setattr(Run.objects, "take_over", breaks_on_the_first)
    sweeping, took, _ = keeper(free=5)
    sweeping.sweep()
    assert [claimed.run for claimed in took] == [runs[1]]


def test_a_sweep_without_free_slots_leaves_the_run_to_others(conversation: Conversation):
    run = run_in(conversation, Status.STREAMING)
    expire(run)
    busy, took, _ = keeper(free=0)
    busy.sweep()
    assert took == []
    run.refresh_from_db()
    assert run.attempt == 1


def test_a_hung_event_loop_does_not_keep_its_runs_for_ever(
    conversation: Conversation, monkeypatch: pytest.MonkeyPatch
):
    run = run_in(conversation, Status.STREAMING)
    expire(run)
    monkeypatch.setattr("runs.lease.time.monotonic", lambda: 10_000.0)
    hung, _, _ = keeper(held=[Lease(run.pk, 1, held_since=10_000.0 - 611)])
    hung.beat()
    assert Run.objects.expired().exists()
    healthy, _, _ = keeper(held=[Lease(run.pk, 1, held_since=10_000.0 - 609)])
    healthy.beat()
    assert not Run.objects.expired().exists()


def test_a_correction_during_the_take_over_is_in_its_inputs_or_reruns_it(
    conversation: Conversation, port: RecordingPort
):
    run = run_in(conversation, Status.STREAMING)
    for n in range(5):
        expire(run)
        submitted, taken = together(
            lambda: services.submit(conversation, f"correction {n}"),  # noqa: B023
            lambda: take_over_soon(run),
        )
        assert submitted.merged
        given = len(taken.published[-1].data["inputs"])
        assert given in (n + 1, n + 2)
        run.refresh_from_db()
        assert run.input_count == n + 2
    assert_sound(run)


async def test_a_correction_during_the_back_off_is_answered_by_the_retry(port: RecordingPort):
    stage = Stage()
    async with working(port, scripted=stage.respond):
        conversation, run = await started(port, stage)
        stage.say.put_nowait(TransientError("busy", code="overloaded"))
        await until_released(run)
        assert (await db(services.submit, conversation, "correction")).merged
        await until(lambda: len(stage.turns) == 2, "the retry")
        stage.say.put_nowait("whole")
        stage.say.put_nowait(None)
        done = await reaches(run, Status.DONE)
    assert stage.turns[1] == ["question", "correction"]
    assert done.output == "whole"
    await db(assert_sound, run)


# Hand-back ----------------------------------------------------------------------------------


def test_a_heartbeat_after_the_hand_back_does_not_hold_the_run(conversation: Conversation):
    run = run_in(conversation, Status.STREAMING)
    beating, _, _ = keeper("w1", held=[Lease(run.pk, 1, held_since=1e12)])
    Run.objects.release(run.pk, attempt=1)
    beating.beat()
    run.refresh_from_db()
    assert run.claimed_by == ""
    assert Run.objects.take_over(run.pk, worker="w2", lease=LEASE) is not None


def test_hand_back_and_heartbeat_at_once_do_not_deadlock(
    transactional_db: None, conversation: Conversation
):
    run = run_in(conversation, Status.STREAMING)
    for attempt in range(1, 6):
        together(
            lambda: Run.objects.renew([(run.pk, attempt)], lease=LEASE),  # noqa: B023
            lambda: Run.objects.release(run.pk, attempt=attempt),  # noqa: B023
        )
        run.refresh_from_db()
        assert (run.claimed_by, run.attempt) == ("", attempt + 1)


async def test_a_worker_told_to_stop_hands_its_runs_to_the_next_one(
    port: RecordingPort, koda: Change
):
    koda(drain_timeout=0.2, sweep_interval=0.2)
    first, second = Stage(), Stage()
    async with working(port, name="a", scripted=first.respond):
        _, run = await started(port, first)
    handed = await db(Run.objects.get, pk=run.pk)
    assert (handed.status, handed.claimed_by, handed.tries) == ("streaming", "", 1)
    async with working(port, name="b", scripted=second.respond):
        second.say.put_nowait("all of it")
        second.say.put_nowait(None)
        done = await reaches(run, Status.DONE)
    assert (done.output, done.tries, done.attempt) == ("all of it", 1, 2)
    assert first.cancelled == 1
    await db(assert_sound, run)


async def test_a_run_that_ends_while_its_worker_drains_is_finished_not_handed_back(
    port: RecordingPort,
):
    stage = Stage()
    async with working(port, scripted=stage.respond) as worker:
        _, run = await started(port, stage)
        worker.stop()
        stage.say.put_nowait("two")
        stage.say.put_nowait(None)
    done = await db(Run.objects.get, pk=run.pk)
    assert (done.status, done.output, done.attempt) == ("done", "one two", 1)
