"""Every time that decides something is the database's, however wrong a process's own clock is."""

from __future__ import annotations

import datetime
import re
import threading
import time
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection, transaction
from django.db.models.functions import Now

from runs import services
from runs.agents import Turn
from runs.models import Conversation, Run
from runs.states import Status
from runs.threads import passes
from tests.conftest import Change
from tests.fakes import LEASE, RecordingPort, assert_sound, run_in
from tests.workers import db, reaches, visitor_conversation, working

ROOT = Path(__file__).parent.parent
SHOWN_ONLY = ROOT / "runs" / "admin"
"""Ages for people to read; nothing depends on them."""
WALL_CLOCK = re.compile(r"timezone\.now|datetime\.now|datetime\.utcnow|time\.time\(|auto_now")


def test_no_module_that_decides_reads_the_wall_clock():
    sources = [*(ROOT / "runs").rglob("*.py"), *(ROOT / "streaming").rglob("*.py")]
    offenders = {
        path.relative_to(ROOT).as_posix()
        for path in sources
        if not path.is_relative_to(SHOWN_ONLY) and WALL_CLOCK.search(path.read_text())
    }
    assert len(sources) > 50
    assert offenders == set(), "a clock that is off by a minute must not decide anything"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("off", [-60, 60])
async def test_a_worker_whose_clock_is_off_by_a_minute_works_as_ever(
    port: RecordingPort, monkeypatch: pytest.MonkeyPatch, off: int
):
    real = time.time

    async def scripted(turn: Turn) -> AsyncIterator[str]:
        yield f"{len(turn.inputs)} inputs"

    monkeypatch.setattr("time.time", lambda: real() + off)
    conversation = await visitor_conversation()
    run = (await db(services.submit, conversation, "one")).run
    async with working(port, scripted=scripted):
        done = await reaches(run, Status.DONE)
    assert (done.attempt, done.output) == (1, "1 inputs")
    away = abs(done.created_at - datetime.datetime.now(tz=datetime.UTC))
    assert away < timedelta(seconds=30), "stamped by the database"
    await db(assert_sound, run)


@pytest.mark.django_db
@pytest.mark.parametrize(("age", "joins"), [(5, True), (29, True), (31, False)])
def test_the_merge_window_is_measured_by_the_database(
    conversation: Conversation, port: RecordingPort, age: int, joins: bool
):
    run = run_in(conversation, Status.STREAMING)
    Run.objects.filter(pk=run.pk).update(created_at=Now() - timedelta(seconds=age))
    assert services.submit(conversation, "second").merged is joins


@pytest.mark.django_db(transaction=True)
def test_a_transaction_that_stands_still_holds_its_run_no_longer_than_a_lease(
    conversation: Conversation, koda: Change
):
    """A process that is frozen in the middle of a write, seen from Postgres."""
    if connection.vendor != "postgresql":
        pytest.skip("SQLite's one lock is held by the process: only its end frees it")
    run = run_in(conversation, Status.STREAMING)
    Run.objects.filter(pk=run.pk).update(lease_expires_at=Now())
    locked, thawed = threading.Event(), threading.Event()
    outcome: list[str] = []

    def freeze() -> None:
        try:
            with transaction.atomic():
                with connection.cursor() as cursor:
                    cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 300")
                Run.objects.select_for_update().get(pk=run.pk)
                locked.set()
                thawed.wait(20)
                Run.objects.filter(pk=run.pk).update(claimed_by="zombie")
            outcome.append("committed")
        except Exception as error:  # noqa: BLE001 - which one it is depends on the driver
            outcome.append("tried again" if passes(error) else repr(error))
        finally:
            connection.close()

    frozen = threading.Thread(target=freeze)
    frozen.start()
    assert locked.wait(10)
    taken = None
    deadline = time.monotonic() + 10
    while taken is None and time.monotonic() < deadline:
        taken = Run.objects.take_over(run.pk, worker="w2", lease=LEASE)
    thawed.set()
    frozen.join()

    assert taken is not None
    assert outcome == ["tried again"]
    run.refresh_from_db()
    assert run.claimed_by == "w2"


def test_every_connection_to_postgres_has_that_limit():
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has no sessions that could be limited")
    options = connection.settings_dict["OPTIONS"]["options"]
    assert "idle_in_transaction_session_timeout=30000" in options
