"""When a message joins the run in progress: one table for the rule and for the database."""

from datetime import timedelta

import pytest
from django.db.models import Value
from django.db.models.functions import Now

from runs import services
from runs.merging import should_merge
from runs.models import Conversation, Run
from runs.states import Status
from tests.fakes import RecordingPort, run_in

WINDOW = timedelta(seconds=30)
CASES = [
    (Status.RUNNING, 0.0, True),
    (Status.RUNNING, 29.9, True),
    (Status.RUNNING, 30.0, False),
    (Status.RUNNING, 31.0, False),
    (Status.STREAMING, 5.0, True),
    (Status.STREAMING, 29.0, True),
    (Status.STREAMING, 29.9, True),
    (Status.STREAMING, 30.0, False),
    (Status.STREAMING, 30.1, False),
    (Status.PENDING, 1.0, False),
    (Status.DONE, 1.0, False),
    (Status.FAILED, 1.0, False),
    (Status.CANCELLED, 1.0, False),
]


@pytest.mark.parametrize(("status", "age", "joins"), CASES)
def test_the_rule(status: Status, age: float, joins: bool):
    assert should_merge(status=status, age=timedelta(seconds=age), window=WINDOW, newest=True) is (
        joins
    )


@pytest.mark.parametrize("status", list(Status))
def test_only_the_newest_run_is_joined(status: Status):
    assert not should_merge(status=status, age=timedelta(0), window=WINDOW, newest=False)


@pytest.mark.parametrize(("status", "age", "joins"), CASES)
def test_the_database_decides_the_same(
    conversation: Conversation,
    port: RecordingPort,
    monkeypatch: pytest.MonkeyPatch,
    status: Status,
    age: float,
    joins: bool,
):
    run = run_in(conversation, status)
    frozen = run.created_at + timedelta(seconds=age)
    monkeypatch.setattr("runs.managers.Now", lambda: Value(frozen))

    submitted = services.submit(conversation, "I meant the other one")

    assert submitted.merged is joins
    assert (submitted.run.pk == run.pk) is joins
    assert submitted.position == (1 if joins else 0)
    assert Run.objects.count() == (1 if joins else 2)


def test_a_run_that_is_not_the_newest_is_left_alone(
    conversation: Conversation, port: RecordingPort
):
    running = run_in(conversation, Status.STREAMING)
    services.submit(conversation, "and another thing", on_busy="queue")

    submitted = services.submit(conversation, "a third")

    assert not submitted.merged
    running.refresh_from_db()
    assert running.input_count == 1


def test_the_clock_that_decides_is_the_databases(
    conversation: Conversation, port: RecordingPort, monkeypatch: pytest.MonkeyPatch
):
    run = run_in(conversation, Status.STREAMING)
    Run.objects.filter(pk=run.pk).update(created_at=Now() - timedelta(seconds=29))
    monkeypatch.setattr("time.time", lambda: 0.0)

    assert services.submit(conversation, "in time").merged

    Run.objects.filter(pk=run.pk).update(created_at=Now() - timedelta(seconds=31))
    assert not services.submit(conversation, "too late").merged
