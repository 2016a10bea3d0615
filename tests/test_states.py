"""The transition table, and the one door through which it is enforced."""

import itertools
import re
from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from runs import events, managers
from runs.errors import IllegalTransition, KodaError
from runs.models import Conversation, Run
from runs.states import ACTIVE, OPEN, TERMINAL, TRANSITIONS, Status, check_move, sources
from tests.fakes import LEASE, assert_sound, finish, log, pending_run, run_in, write

LEGAL = {
    (Status.PENDING, Status.RUNNING),
    (Status.PENDING, Status.CANCELLED),
    (Status.PENDING, Status.FAILED),
    (Status.RUNNING, Status.STREAMING),
    (Status.RUNNING, Status.DONE),
    (Status.RUNNING, Status.FAILED),
    (Status.RUNNING, Status.CANCELLED),
    (Status.STREAMING, Status.DONE),
    (Status.STREAMING, Status.FAILED),
    (Status.STREAMING, Status.CANCELLED),
}
STATUS_WRITE = re.compile(r'UPDATE "?koda_runs"? (?:(?!WHERE).)*?"?status"? = ', re.DOTALL)
ILLEGAL = sorted(set(itertools.product(Status, Status)) - LEGAL)


def test_the_table_has_the_legal_moves_and_no_others():
    assert {(a, b) for a, targets in TRANSITIONS.items() for b in targets} == LEGAL


def test_terminal_statuses_have_no_way_out():
    assert all(not TRANSITIONS[status] for status in TERMINAL)
    assert set(Status) == OPEN | TERMINAL
    assert {Status.PENDING} == OPEN - ACTIVE


@pytest.mark.parametrize(("source", "to"), ILLEGAL)
def test_an_illegal_move_raises(source: Status, to: Status):
    with pytest.raises(IllegalTransition, match=f"from {source} to {to}"):
        check_move(source, to)


@pytest.mark.parametrize(("source", "to"), sorted(LEGAL))
def test_a_legal_move_passes(source: Status, to: Status):
    check_move(source, to)
    assert source in sources(to)


def test_the_diagram_in_the_docs_is_the_table():
    page = (Path(__file__).parent.parent / "docs" / "states.md").read_text()
    diagram = page.split("```mermaid")[1].split("```")[0]
    drawn = set(re.findall(r"(\w+) --> (\w+)", diagram))
    explained = set(re.findall(r"^\| `(\w+) → (\w+)` \|", page, flags=re.MULTILINE))
    assert drawn == {(str(a), str(b)) for a, b in LEGAL}
    assert explained == drawn


@pytest.mark.parametrize(("source", "to"), ILLEGAL)
def test_the_guarded_write_refuses_an_illegal_move(
    conversation: Conversation, source: Status, to: Status
):
    run = run_in(conversation, source)
    before = log(run)

    answer = finish(run, to=to) if to in TERMINAL else write(run, events.delta("x"), to=to)

    assert isinstance(answer, KodaError)
    run.refresh_from_db()
    assert run.status == source
    assert log(run) == before
    assert_sound(run)


@pytest.mark.parametrize("status", sorted(TERMINAL))
def test_a_late_fragment_changes_nothing(conversation: Conversation, status: Status):
    run = run_in(conversation, status)
    before = log(run)

    answer = write(run, events.delta("one more"))

    assert isinstance(answer, KodaError)
    assert log(run) == before
    assert_sound(run)


@pytest.mark.parametrize("status", sorted(TERMINAL))
def test_ending_a_finished_run_from_outside_returns_it_as_it_is(
    conversation: Conversation, status: Status
):
    run = run_in(conversation, status)

    for ended in (
        Run.objects.cancel(run.pk, reason="user"),
        Run.objects.fail(run.pk, code="x", message="x"),
    ):
        assert ended.published == []
        assert ended.run.status == status
    assert_sound(run)


def test_every_status_write_goes_through_the_one_door(
    conversation: Conversation, monkeypatch: pytest.MonkeyPatch
):
    through_the_door: list[str] = []

    def traced(door):
        def through(*args, **kwargs):
            with CaptureQueriesContext(connection) as inside:
                hit = door(*args, **kwargs)
            through_the_door.extend(query["sql"] for query in inside)
            return hit

        return through

    for door in ("_transition", "_append_at_once", "_claim_at_once"):
        monkeypatch.setattr(managers.RunManager, door, traced(getattr(managers.RunManager, door)))
    with CaptureQueriesContext(connection) as everything:
        run = pending_run(conversation)
        Run.objects.claim(worker="w1", lease=LEASE)
        write(run, events.delta("a"), to=Status.STREAMING)
        Run.objects.add_input(run.pk, window=LEASE)
        Run.objects.renew([(run.pk, 1)], lease=LEASE)
        Run.objects.release(run.pk, attempt=1)
        Run.objects.take_over(run.pk, worker="w2", lease=LEASE)
        finish(run)
        Run.objects.cancel(pending_run(conversation).pk, reason="user")
        Run.objects.fail(pending_run(conversation).pk, code="x", message="x")

    status_writes = [q["sql"] for q in everything if STATUS_WRITE.search(q["sql"])]
    assert len(status_writes) >= 5
    assert [sql for sql in status_writes if sql not in through_the_door] == []
    guard = r'WHERE .*("?status"? (IN|=)|sources \? run\.status)'
    assert all(re.search(guard, sql, re.DOTALL) for sql in status_writes)
