"""The append for many runs at once: on Postgres one statement, elsewhere the ORM; one behaviour."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from runs import events
from runs.errors import AlreadyFinished, Superseded
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


def test_ends_and_fragments_of_one_flush_are_stored_together():
    ending, going_on = runs_in(Status.STREAMING, Status.STREAMING)
    end = Append(
        ending.pk,
        ending.attempt,
        "w",
        ending.next_seq,
        [events.run_completed(finish_reason="stop", usage=None)],
        to=Status.DONE,
        consumed=1,
        ending=Ending("all of it", finish_reason="stop"),
    )
    assert Run.objects.append([end, text_for(going_on, "x")], lease=LEASE) == [None, None]
    ending.refresh_from_db()
    assert (ending.status, ending.output) == ("done", "all of it")
    assert log(going_on)[-1].data == {"text": "x"}


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


@pytest.mark.skipif(
    "connection.vendor != 'postgresql'", reason="SQLite pays nothing for a round trip"
)
def test_a_flush_is_one_statement_however_many_runs_it_has():
    runs = runs_in(*[Status.STREAMING] * 12)
    batch = [text_for(run, "a", "b") for run in runs]
    with CaptureQueriesContext(connection) as asked:
        assert Run.objects.append(batch, lease=LEASE) == [None] * 12
    assert len(asked) == 1
