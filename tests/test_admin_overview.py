"""The overview: what is open, what ended lately, who waits, who works."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models.functions import Now
from django.test import Client
from django.urls import reverse

from runs import reports
from runs.admin.overview import OLDEST, overview
from runs.models import Conversation, Run, WorkerProcess
from runs.states import Status
from tests.admin_pages import OVERVIEW
from tests.fakes import pending_run, run_in

pytestmark = pytest.mark.django_db


def elsewhere() -> Conversation:
    return Conversation.objects.create(visitor_key="visitor")


def test_runs_are_counted_by_status():
    for status in (Status.DONE, Status.DONE, Status.FAILED, Status.STREAMING, Status.PENDING):
        run_in(elsewhere(), status)
    seen = overview()
    assert {count.status: count.number for count in seen.open} == {
        "pending": 1,
        "running": 0,
        "streaming": 1,
    }
    assert {count.status: (count.hour, count.day) for count in seen.ended} == {
        "done": (2, 2),
        "failed": (1, 1),
        "cancelled": (0, 0),
    }


def test_ended_runs_count_for_a_day():
    runs = [run_in(elsewhere(), Status.DONE) for _ in range(3)]
    for run, hours in zip(runs, (0, 2, 25), strict=True):
        Run.objects.filter(pk=run.pk).update(created_at=Now() - timedelta(hours=hours))
    assert [(count.hour, count.day) for count in overview().ended if count.status == "done"] == [
        (1, 2)
    ]


def test_the_oldest_pending_runs_come_first_with_what_they_wait_for():
    busy = elsewhere()
    run_in(busy, Status.STREAMING)
    behind = pending_run(busy)
    free = [pending_run(elsewhere()) for _ in range(OLDEST)]
    seen = overview()
    assert [run.pk for run in seen.oldest] == [run.pk for run in [behind, *free[:-1]]]
    assert [run.behind for run in seen.oldest] == [True, *[False] * (OLDEST - 1)]


def test_a_worker_unheard_of_for_a_lease_is_silent_and_its_slots_do_not_count(
    admin_client: Client,
):
    reports.report("alive", concurrency=20, running=3)
    reports.report("dead", concurrency=20, running=20)
    WorkerProcess.objects.filter(pk="dead").update(seen_at=Now() - timedelta(minutes=5))
    seen = overview()
    assert [(worker.name, worker.silent) for worker in seen.workers] == [
        ("alive", False),
        ("dead", True),
    ]
    assert (seen.running, seen.slots) == (3, 20)
    assert "No worker reports" not in admin_client.get(OVERVIEW).content.decode()


def test_runs_that_nobody_holds_any_more_raise_an_alarm(admin_client: Client):
    run = run_in(elsewhere(), Status.STREAMING)
    assert "without a worker" not in admin_client.get(OVERVIEW).content.decode()
    Run.objects.filter(pk=run.pk).update(lease_expires_at=Now() - timedelta(minutes=5))
    page = admin_client.get(OVERVIEW).content.decode()
    assert "1 without a worker" in page
    assert "No worker reports" in page


def test_list_and_app_lead_to_the_overview(admin_client: Client):
    for url in (reverse("admin:koda_runs_run_changelist"), "/admin/koda_runs/"):
        assert OVERVIEW in admin_client.get(url).content.decode()
