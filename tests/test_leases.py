"""Leases: who may take a run over, when, and what that counts as."""

from datetime import timedelta

from runs import events
from runs.errors import Superseded
from runs.models import Conversation, Run
from runs.states import Status
from tests.fakes import LEASE, assert_sound, entry, run_in
from tests.racing import expire


def test_a_healthy_lease_is_not_taken(conversation: Conversation):
    run = run_in(conversation, Status.STREAMING)
    assert Run.objects.take_over(run.pk, worker="w2", lease=LEASE) is None


def test_an_expired_lease_is_taken_over_once(conversation: Conversation):
    run = run_in(conversation, Status.STREAMING)
    zombie = entry(run, events.delta("late"))
    expire(run)

    claimed = Run.objects.take_over(run.pk, worker="w2", lease=LEASE)

    assert claimed is not None
    assert (claimed.run.attempt, claimed.run.tries, claimed.run.claimed_by) == (2, 2, "w2")
    assert claimed.run.status == Status.STREAMING
    assert claimed.published[-1].data == {
        "reason": "recovered",
        "attempt": 2,
        "inputs": ["hello"],
    }
    assert Run.objects.take_over(run.pk, worker="w3", lease=LEASE) is None
    [answer] = Run.objects.append([zombie], lease=LEASE)
    assert isinstance(answer, Superseded)
    assert_sound(run)


def test_renewing_keeps_only_what_is_still_ours(conversation: Conversation):
    run = run_in(conversation, Status.STREAMING)
    expire(run)
    assert Run.objects.renew([(run.pk, 9)], lease=LEASE) == 0
    assert Run.objects.expired().exists()
    assert Run.objects.renew([(run.pk, 1)], lease=LEASE) == 1
    assert not Run.objects.expired().exists()


def test_a_retry_counts_as_a_try_and_a_hand_back_does_not(conversation: Conversation):
    run = run_in(conversation, Status.STREAMING)

    Run.objects.release(run.pk, attempt=1)
    handed = Run.objects.take_over(run.pk, worker="w2", lease=LEASE)
    assert handed is not None
    assert (handed.run.attempt, handed.run.tries) == (2, 1)
    assert handed.published[-1].data["reason"] == "recovered"

    error = {"code": "busy", "message": "later"}
    assert Run.objects.release(run.pk, attempt=2, error=error)
    assert not Run.objects.release(run.pk, attempt=2, error=error)
    retried = Run.objects.take_over(run.pk, worker="w3", lease=LEASE)
    assert retried is not None
    assert (retried.run.attempt, retried.run.tries, retried.run.error) == (3, 2, None)
    assert retried.published[-1].data["reason"] == "retry"
    assert_sound(run)


def test_a_retry_waits_for_its_back_off(conversation: Conversation):
    run = run_in(conversation, Status.STREAMING)
    Run.objects.release(run.pk, attempt=1, backoff=timedelta(minutes=1))
    assert Run.objects.take_over(run.pk, worker="w2", lease=LEASE) is None


def test_only_an_expired_run_is_failed_as_lost(conversation: Conversation):
    run = run_in(conversation, Status.STREAMING)
    assert Run.objects.fail_expired(run.pk, code="worker_lost", message="x") is None
    expire(run)
    ended = Run.objects.fail_expired(run.pk, code="worker_lost", message="x")
    assert ended is not None
    assert (ended.run.status, ended.run.error) == (
        "failed",
        {"code": "worker_lost", "message": "x"},
    )
    assert ended.run.output == "so far "
    assert_sound(run)
