"""The append for many runs at once: on Postgres one statement, elsewhere the ORM; one behaviour."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest
from django.db import DataError, connection
from django.test.utils import CaptureQueriesContext

from runs import events, sql
from runs.errors import AlreadyFinished, InputGrew, Superseded
from runs.models import Conversation, Run
from runs.states import Status
from runs.writes import Append, Ending
from tests.fakes import LEASE, assert_sound, finish, log, run_in

pytestmark = pytest.mark.django_db


def runs_in(*statuses: Status) -> list[Run]:
    return [run_in(Conversation.objects.create(visitor_key="v"), status) for status in statuses]


def text_for(run: Run, *texts: str, to: Status | None = None) -> Append:
    said = [events.delta(text) for text in texts]
    return Append(run.pk, run.attempt, "w", run.next_seq, said, to=to)


def test_only_the_runs_that_are_as_their_writer_believes_take_their_events():
    ours, over, taken, fresh = runs_in(
        Status.STREAMING, Status.STREAMING, Status.STREAMING, Status.RUNNING
    )
    batch = [text_for(run, "a", "b") for run in (ours, over, taken)]
    batch.append(text_for(fresh, "c", to=Status.STREAMING))
    finish(over)
    Run.objects.release(taken.pk, attempt=taken.attempt)
    before = {run.pk: log(run) for run in (over, taken)}

    stored, finished, superseded, first = Run.objects.append(batch, lease=LEASE)

    assert stored is None
    assert first is None
    assert isinstance(finished, AlreadyFinished)
    assert isinstance(superseded, Superseded)
    for run in (over, taken):
        assert log(run) == before[run.pk]
    assert [event.data["text"] for event in log(ours)[-2:]] == ["a", "b"]
    for run in (ours, over, taken, fresh):
        run.refresh_from_db()
        assert_sound(run)
    assert fresh.status == Status.STREAMING
    assert fresh.first_token_at is not None


def end_of(run: Run, to: Status = Status.DONE, *, consumed: int | None = 1, **more) -> Append:
    said = [events.run_completed(finish_reason="stop", usage=None)]
    ending = Ending("all of it", **{"finish_reason": "stop"} | more)
    return Append(
        run.pk, run.attempt, "w", run.next_seq, said, to=to, consumed=consumed, ending=ending
    )


def test_ends_and_fragments_of_one_flush_are_stored_together():
    ending, failing, going_on = runs_in(*[Status.STREAMING] * 3)
    usage = {"input_tokens": 3, "output_tokens": 2**40}
    error = {"code": "agent_error", "message": "it \\ broke"}
    done = end_of(ending, usage=usage)
    failed = end_of(failing, to=Status.FAILED, consumed=None, finish_reason="error", error=error)
    batch = [done, failed, text_for(going_on, "x")]
    assert Run.objects.append(batch, lease=LEASE) == [None] * 3
    for run in (ending, failing, going_on):
        run.refresh_from_db()
    assert (ending.status, ending.output, ending.finish_reason) == ("done", "all of it", "stop")
    assert (ending.usage, ending.error) == (usage, None)
    assert (failing.status, failing.usage, failing.error) == ("failed", None, error)
    for run in (ending, failing):
        assert run.finished_at >= run.first_token_at
        assert (run.lease_expires_at, run.claimed_by) == (None, "")
    assert log(going_on)[-1].data == {"text": "x"}
    assert (going_on.output, going_on.finished_at) == ("", None)


def test_an_end_is_refused_by_a_run_with_an_unread_input():
    corrected, other = runs_in(Status.STREAMING, Status.STREAMING)
    batch = [end_of(corrected, consumed=0), end_of(other)]
    refused, stored = Run.objects.append(batch, lease=LEASE)
    assert isinstance(refused, InputGrew)
    assert stored is None
    corrected.refresh_from_db()
    assert (corrected.status, corrected.output) == ("streaming", "")
    assert_sound(corrected)


def test_a_repeated_append_is_recognised_and_stores_nothing_twice():
    [run] = runs_in(Status.STREAMING)
    entry = text_for(run, "once")
    assert Run.objects.append([entry], lease=LEASE) == [None]
    length = len(log(run))
    assert Run.objects.append([entry], lease=LEASE) == [None]
    assert len(log(run)) == length


def test_tool_data_arrives_as_it_was_given():
    [run] = runs_in(Status.STREAMING)
    output = {"big": 2**64, "text": "你好 😀 \\ \" ' {},\n\u2028", "float": 1e22, "none": None}
    event = events.tool_completed(tool_call_id="c", output=[output])
    entry = Append(run.pk, run.attempt, "w", run.next_seq, [event])
    assert Run.objects.append([entry], lease=LEASE) == [None]
    assert log(run)[-1].data == event.data


on_postgres = pytest.mark.skipif(
    "connection.vendor != 'postgresql'", reason="SQLite pays nothing for a round trip"
)


@on_postgres
def test_a_flush_is_one_statement_however_many_runs_it_has():
    runs = runs_in(*[Status.STREAMING] * 12)
    batch = [text_for(run, "a", "b") for run in runs[:8]] + [end_of(run) for run in runs[8:]]
    with CaptureQueriesContext(connection) as asked:
        assert Run.objects.append(batch, lease=LEASE) == [None] * 12
    assert len(asked) == 1


class Session:
    """Appends a word at a time, and tells which statements that took."""

    def __init__(self) -> None:
        [self.run] = runs_in(Status.STREAMING)
        self.begin()
        self.words: list[str] = []

    def begin(self) -> None:
        """A session that has prepared nothing."""
        connection.close()
        connection.close_pool()

    def append(self) -> list[str]:
        """The first words of the statements, whose one effect is the event."""
        self.run.refresh_from_db()
        self.words.append(str(len(self.words)))
        with CaptureQueriesContext(connection) as asked:
            batch = [text_for(self.run, self.words[-1])]
            assert Run.objects.append(batch, lease=LEASE) == [None]
        texts = [event.data["text"] for event in log(self.run) if event.type == "delta"]
        assert texts[-len(self.words) :] == self.words
        return [query["sql"].split()[0] for query in asked]


def when_plans_are_old(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is so late for `runs.sql` alone: the pool of connections has threads with clocks."""
    now = time.monotonic() + sql.RENEWED
    monkeypatch.setattr(sql, "time", SimpleNamespace(monotonic=lambda: now))


@on_postgres
@pytest.mark.django_db(transaction=True)
def test_a_session_prepares_the_append_once_and_anew_when_tables_may_have_grown(monkeypatch):
    session = Session()
    assert session.append() == ["PREPARE", "EXECUTE"]
    assert session.append() == ["EXECUTE"]
    assert session.append() == ["EXECUTE"]
    when_plans_are_old(monkeypatch)
    assert session.append() == ["DEALLOCATE", "PREPARE", "EXECUTE"]
    assert session.append() == ["EXECUTE"]
    session.begin()
    assert session.append() == ["PREPARE", "EXECUTE"]


@on_postgres
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("found_out", ["at the next append", "when it is time to renew"])
def test_what_a_pooler_took_away_is_done_without(monkeypatch, found_out: str):
    session = Session()
    session.append()
    with connection.cursor() as cursor:
        cursor.execute("DISCARD ALL")
    if found_out == "when it is time to renew":
        when_plans_are_old(monkeypatch)
        assert session.append() == ["DEALLOCATE", "WITH"]
    else:
        assert session.append() == ["EXECUTE", "WITH"]
    assert session.append() == ["WITH"]


@on_postgres
@pytest.mark.django_db(transaction=True)
def test_what_a_pooler_has_from_somebody_else_is_left_alone():
    session = Session()
    with connection.cursor() as cursor:
        cursor.execute(sql.PREPARE_APPEND)
    assert session.append() == ["PREPARE", "WITH"]
    assert session.append() == ["WITH"]


@on_postgres
@pytest.mark.django_db(transaction=True)
def test_a_prepared_append_that_cannot_be_stored_says_so():
    session = Session()
    session.append()
    said = events.tool_completed(tool_call_id="c", output="\0")
    entry = Append(session.run.pk, session.run.attempt, "w", session.run.next_seq + 1, [said])
    with pytest.raises(DataError):
        Run.objects.append([entry], lease=LEASE)
    assert session.append() == ["EXECUTE"]
