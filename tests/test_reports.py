"""Workers report themselves, and the dead do not stay."""

from datetime import timedelta

import pytest
from django.db.models.functions import Now

from runs import reports
from runs.models import WorkerProcess

pytestmark = pytest.mark.django_db


def age(name: str, by: timedelta) -> None:
    WorkerProcess.objects.filter(pk=name).update(started_at=Now() - by, seen_at=Now() - by)


def test_a_first_report_adds_the_worker():
    reports.report("w1", concurrency=20, running=3)
    worker = WorkerProcess.objects.get()
    assert (worker.name, worker.concurrency, worker.running) == ("w1", 20, 3)
    assert worker.started_at is not None
    assert worker.seen_at is not None


def test_a_later_report_renews_all_but_the_start():
    reports.report("w1", concurrency=20, running=3)
    age("w1", timedelta(minutes=5))
    before = WorkerProcess.objects.get()

    reports.report("w1", concurrency=10, running=0)

    worker = WorkerProcess.objects.get()
    assert (worker.concurrency, worker.running) == (10, 0)
    assert worker.started_at == before.started_at
    assert worker.seen_at - before.seen_at > timedelta(minutes=4)


def test_a_report_is_one_statement(django_assert_num_queries):
    reports.report("w1", concurrency=20, running=3)
    with django_assert_num_queries(3):  # between a savepoint and its release
        reports.report("w1", concurrency=20, running=4)


def test_a_worker_that_stopped_is_forgotten():
    reports.report("w1", concurrency=20, running=0)
    reports.report("w2", concurrency=20, running=0)
    reports.forget("w1")
    reports.forget("never heard of")
    assert [worker.name for worker in WorkerProcess.objects.all()] == ["w2"]


def test_only_workers_unheard_of_for_long_are_cleared():
    reports.report("w1", concurrency=20, running=0)
    reports.report("w2", concurrency=20, running=0)
    age("w1", timedelta(hours=2))
    assert reports.clear_dead(timedelta(hours=1)) == 1
    assert [worker.name for worker in WorkerProcess.objects.all()] == ["w2"]
