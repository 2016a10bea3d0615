"""The guarded writes: what they store, what they refuse, and how they say so."""

from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.db.models.functions import Now

from runs import events
from runs.errors import AlreadyFinished, Gone, InputGrew, Superseded
from runs.models import Conversation, Message, Run
from runs.states import Status
from tests.fakes import LEASE, assert_sound, entry, finish, log, pending_run, run_in, types, write
from tests.racing import expire


def claim(worker: str = "w1") -> Run | None:
    claimed = Run.objects.claim(worker=worker, lease=LEASE)
    return None if claimed is None else claimed.run


# Claiming -----------------------------------------------------------------------------------


def test_a_claim_takes_the_oldest_pending_run_and_says_so_in_its_log(conversation: Conversation):
    first = pending_run(Conversation.objects.create(visitor_key="other"))
    second = pending_run(conversation)

    claimed = Run.objects.claim(worker="w1", lease=LEASE)

    assert claimed is not None
    assert claimed.run == first
    assert (claimed.run.status, claimed.run.attempt, claimed.run.tries) == ("running", 1, 1)
    assert claimed.run.claimed_by == "w1"
    assert log(first) == claimed.published
    assert claimed.published[0].data == {"attempt": 1, "agent": "demo"}
    assert_sound(first)
    assert claim() == second
    assert claim() is None


def test_the_second_run_of_a_conversation_waits_for_the_first(conversation: Conversation):
    first, second, third = (pending_run(conversation) for _ in range(3))

    assert claim() == first
    assert claim() is None
    write(first, events.delta("a"), to=Status.STREAMING)
    assert claim() is None
    finish(first)
    assert claim() == second
    Run.objects.cancel(second.pk, reason="user")
    assert claim() == third


def test_turns_decide_the_order_even_when_timestamps_are_equal(conversation: Conversation):
    first, second = pending_run(conversation), pending_run(conversation)
    Run.objects.filter(pk=second.pk).update(created_at=first.created_at - timedelta(seconds=5))

    assert claim() == first


def test_the_database_refuses_a_second_active_run(conversation: Conversation):
    run_in(conversation, Status.RUNNING)
    second = pending_run(conversation)
    with pytest.raises(IntegrityError), transaction.atomic():
        Run.objects._transition(Q(pk=second.pk), to=Status.RUNNING)


def test_the_database_refuses_a_finished_run_without_a_time(conversation: Conversation):
    run = run_in(conversation, Status.RUNNING)
    with pytest.raises(IntegrityError), transaction.atomic():
        Run.objects.filter(pk=run.pk).update(finished_at=Now())


# Appending ----------------------------------------------------------------------------------


def test_the_first_token_moves_the_run_and_is_timed_once(conversation: Conversation):
    run = run_in(conversation, Status.RUNNING)
    assert run.first_token_at is None

    assert write(run, events.delta("a"), to=Status.STREAMING) is None
    run.refresh_from_db()
    first_token_at = run.first_token_at
    assert first_token_at is not None
    assert write(run, events.delta("b"), events.delta("c")) is None

    run.refresh_from_db()
    assert (run.status, run.next_seq, run.first_token_at) == ("streaming", 4, first_token_at)
    assert [event.seq for event in log(run)] == [0, 1, 2, 3]


def test_one_batch_writes_several_runs_and_refuses_only_those_it_must(conversation: Conversation):
    mine = run_in(conversation, Status.RUNNING)
    lost = run_in(Conversation.objects.create(visitor_key="b"), Status.RUNNING)
    done = run_in(Conversation.objects.create(visitor_key="c"), Status.DONE)

    answers = Run.objects.append(
        [
            entry(lost, events.delta("x"), attempt=7),
            entry(mine, events.delta("y"), to=Status.STREAMING),
            entry(done, events.delta("z")),
        ],
        lease=LEASE,
    )

    assert isinstance(answers[0], Superseded)
    assert answers[1] is None
    assert isinstance(answers[2], AlreadyFinished)
    assert types(mine)[-1] == "delta"
    for run in (mine, lost, done):
        assert_sound(run)


def test_an_append_renews_the_lease(conversation: Conversation):
    run = run_in(conversation, Status.RUNNING)
    expire(run)
    write(run, events.delta("a"), to=Status.STREAMING)
    assert not Run.objects.expired().exists()


def test_the_end_is_refused_while_an_input_is_unread(conversation: Conversation):
    run = run_in(conversation, Status.STREAMING)
    assert Run.objects.add_input(run.pk, window=LEASE) == 1

    assert isinstance(finish(run, consumed=1), InputGrew)
    run.refresh_from_db()
    assert run.status == Status.STREAMING

    assert finish(run, consumed=2) is None
    assert Run.objects.add_input(run.pk, window=LEASE) is None
    assert_sound(run)


def test_the_end_is_stored_with_what_it_leaves_behind(conversation: Conversation):
    run = run_in(conversation, Status.STREAMING)
    finish(run)
    run.refresh_from_db()
    assert (run.output, run.finish_reason) == ("all of it", "stop")
    assert (run.claimed_by, run.lease_expires_at) == ("", None)
    assert_sound(run)


def test_a_commit_whose_answer_was_lost_counts_as_done_when_tried_again(
    conversation: Conversation,
):
    run = run_in(conversation, Status.STREAMING)
    twice = entry(run, events.delta("once"), events.delta("only"))

    first = Run.objects.append([twice], lease=LEASE)
    second = Run.objects.append([twice], lease=LEASE)

    assert (first, second) == ([None], [None])
    assert [event.data["text"] for event in log(run)[-2:]] == ["once", "only"]
    assert_sound(run)


def test_a_lost_answer_to_the_end_counts_as_done_too(conversation: Conversation):
    run = run_in(conversation, Status.STREAMING)
    seq = Run.objects.get(pk=run.pk).next_seq
    assert finish(run) is None
    assert finish(run, seq=seq, worker="w1") is None
    assert_sound(run)


def test_another_writer_at_the_same_number_is_refused(conversation: Conversation):
    run = run_in(conversation, Status.STREAMING)
    seq = Run.objects.get(pk=run.pk).next_seq
    write(run, events.delta("mine"))
    assert isinstance(write(run, events.delta("other"), seq=seq), Superseded)
    assert_sound(run)


def test_a_deleted_run_refuses_as_gone(conversation: Conversation):
    run = run_in(conversation, Status.STREAMING)
    late = entry(run, events.delta("x"))
    Message.objects.all().delete()
    Run.objects.all().delete()
    [answer] = Run.objects.append([late], lease=LEASE)
    assert isinstance(answer, Gone)
    assert not Message.objects.exists()


# Ending from outside ------------------------------------------------------------------------


def test_cancel_keeps_the_text_and_closes_open_tools(conversation: Conversation):
    run = run_in(conversation, Status.STREAMING)
    started = events.tool_started(tool_call_id="c1", name="find", input={})
    write(run, started, events.delta("and more"))

    ended = Run.objects.cancel(run.pk, reason="user")

    run.refresh_from_db()
    assert (run.status, run.finish_reason) == ("cancelled", "user")
    assert run.output == "so far and more"
    assert [event.type for event in ended.published] == ["tool_failed", "run_cancelled"]
    assert_sound(run)


def test_a_cancel_folds_only_what_came_after_the_last_restart(conversation: Conversation):
    run = run_in(conversation, Status.STREAMING)
    started = events.tool_started(tool_call_id="c1", name="find", input={})
    restarted = events.run_restarted(
        reason=events.RestartReason.MERGED, attempt=1, inputs=["a", "b"]
    )
    write(run, started, restarted, events.delta("anew"))

    ended = Run.objects.cancel(run.pk, reason="user")

    assert ended.run.output == "anew"
    assert [event.type for event in ended.published] == ["run_cancelled"]


def test_a_pending_run_can_be_cancelled(conversation: Conversation):
    run = pending_run(conversation)
    Run.objects.cancel(run.pk, reason="user")
    assert types(run) == ["run_cancelled"]
    assert_sound(run)


def test_a_worker_fails_only_the_attempt_that_it_owned(conversation: Conversation):
    run = run_in(conversation, Status.STREAMING)
    expire(run)
    Run.objects.take_over(run.pk, worker="w2", lease=LEASE)

    late = Run.objects.fail(run.pk, code="x", message="x", attempt=1)

    assert late.published == []
    run.refresh_from_db()
    assert run.status == Status.STREAMING
    assert Run.objects.fail(run.pk, code="x", message="x", attempt=2).run.status == "failed"
    assert_sound(run)
