"""Retention: old logs become one snapshot and an end, and nothing else changes."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import DataError, IntegrityError, transaction
from django.db.models.functions import Now
from django.test import Client
from django.test.utils import CaptureQueriesContext

from runs import conf, events, projection, retention
from runs.events import EventType, RestartReason
from runs.history import history_before
from runs.models import Conversation, Message, Run
from runs.reducer import fold
from runs.retention import Archived
from runs.states import ACTIVE, Status
from tests.admin_pages import page_url, text
from tests.fakes import finish, log, pending_run, run_in, write
from tests.racing import together
from tests.waiting import until
from tests.workers import db, working

NOW = timedelta(0)
ENDS = [Status.DONE, Status.FAILED, Status.CANCELLED]
TOOLS = [
    events.tool_started(tool_call_id="zz", name="search", input={"q": 1}),
    events.tool_started(tool_call_id="a", name="buy", input=None),
    events.delta("Found. "),
    events.tool_completed(tool_call_id="zz", output={"hits": ["你好"]}),
    events.tool_failed(tool_call_id="a", error="sold out"),
    events.tool_started(tool_call_id="b", name="never", input={}),
]


def grown(conversation: Conversation, to: Status) -> Run:
    """A run with text, tools and a restart in its log, that ended so."""
    run = run_in(conversation, Status.STREAMING)
    again = events.run_restarted(reason=RestartReason.MERGED, attempt=1, inputs=["a", "b"])
    write(run, events.reasoning("hm"), again, events.delta("Well. "), *TOOLS)
    if to == Status.DONE:
        finish(run)
    elif to == Status.FAILED:
        Run.objects.fail(run.pk, code="broken", message="It broke.")
    else:
        Run.objects.cancel(run.pk, reason="user")
    run.refresh_from_db()
    return run


def in_time(run: Run, **ago: float) -> Run:
    Run.objects.filter(pk=run.pk).update(finished_at=Now() - timedelta(**ago))
    return run


@pytest.mark.parametrize("end", ENDS)
def test_the_end_stays_and_a_snapshot_of_the_reducer_takes_the_place_of_the_rest(
    conversation: Conversation, end: Status
):
    run = grown(conversation, end)
    before = log(run)
    times = dict(Message.objects.filter(run_id=run.pk).values_list("seq", "created_at"))

    assert retention.archive(NOW) == Archived(1, len(before) - 2)

    snapshot, last = log(run)
    assert last == before[-1]
    assert (snapshot.seq, snapshot.type) == (last.seq - 1, EventType.SNAPSHOT)
    assert snapshot.data == fold(str(run.pk), before[:-1])
    assert fold(str(run.pk), [snapshot, last]) == fold(str(run.pk), before)
    after = dict(Message.objects.filter(run_id=run.pk).values_list("seq", "created_at"))
    assert after == {seq: times[seq] for seq in after}
    row = Run.objects.get(pk=run.pk)
    assert (row.status, row.next_seq, row.output) == (end, run.next_seq, run.output)
    assert row.archived_at is not None


@pytest.mark.parametrize("end", ENDS)
def test_what_the_next_agent_is_told_is_the_same_tools_in_their_order(
    conversation: Conversation, end: Status
):
    grown(conversation, end)
    following = pending_run(conversation)
    told = history_before(following)
    called = [message["tool_call_id"] for message in told if message["role"] == "tool"]
    assert called[:2] == ["zz", "a"]
    retention.archive(NOW)
    assert history_before(following) == told


def test_logs_of_one_and_two_events_and_a_run_that_never_started(conversation: Conversation):
    never = pending_run(conversation)
    Run.objects.cancel(never.pk, reason="user")
    short = run_in(conversation, Status.DONE)
    alone, [started, end] = log(never), log(short)
    assert retention.archive(NOW) == Archived(2, 0)
    assert log(never) == alone
    assert [event.type for event in alone] == [EventType.RUN_CANCELLED]
    snapshot, kept = log(short)
    assert kept == end
    assert (snapshot.seq, snapshot.data) == (0, fold(str(short.pk), [started]))
    assert retention.archive(NOW) == Archived(0, 0)


def test_a_run_is_archived_once_it_has_been_over_for_long_enough(conversation: Conversation):
    young = in_time(grown(conversation, Status.DONE), hours=1)
    old = in_time(grown(conversation, Status.DONE), hours=7)
    kept = log(young)
    age = conf.get().fragment_retention_delta
    assert retention.archive(age).runs == 1
    assert len(log(old)) == 2
    assert log(young) == kept


@pytest.mark.parametrize("status", [Status.PENDING, *sorted(ACTIVE)])
def test_an_open_run_is_never_touched_whatever_the_age(conversation: Conversation, status: Status):
    run = run_in(conversation, status)
    kept = log(run)
    assert retention.archive(NOW) == Archived(0, 0)
    assert retention.archive_run(run.pk, run.next_seq) == 0
    assert log(run) == kept
    assert Run.objects.get(pk=run.pk).archived_at is None
    with pytest.raises(IntegrityError), transaction.atomic():
        Run.objects.filter(pk=run.pk).update(archived_at=Now())


def test_broken_off_in_the_middle_nothing_has_happened_and_the_next_time_does_it(
    conversation: Conversation, monkeypatch: pytest.MonkeyPatch
):
    run = grown(conversation, Status.DONE)
    kept = log(run)
    replace = type(Message.objects.all()).replace

    def dies(rows, run_id, snapshot):
        replace(rows, run_id, snapshot)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(type(Message.objects.all()), "replace", dies)
        with pytest.raises(KeyboardInterrupt):
            retention.archive(NOW)
    assert log(run) == kept
    assert Run.objects.get(pk=run.pk).archived_at is None
    assert retention.archive(NOW) == Archived(1, len(kept) - 2)


@pytest.mark.django_db(transaction=True)
def test_several_at_once_archive_each_run_once():
    runs = [grown(Conversation.objects.create(), Status.DONE) for _ in range(6)]
    gone = [len(log(run)) - 2 for run in runs]
    done = together(*[lambda: retention.archive(NOW)] * 4)
    assert sum(one.events for one in done) == sum(gone)
    assert [len(log(run)) for run in runs] == [2] * 6


def test_a_log_that_does_not_add_up_stays_as_it_is_and_is_not_in_the_way(
    conversation: Conversation, caplog: pytest.LogCaptureFixture
):
    holed, whole = (grown(conversation, Status.DONE) for _ in range(2))
    Message.objects.filter(run_id=holed.pk, seq=2).delete()
    kept = log(holed)
    assert retention.archive(NOW).runs == 2
    assert log(holed) == kept
    assert len(log(whole)) == 2
    assert f"run {holed.pk}: log kept, it does not add up: gap" in caplog.text
    assert retention.archive(NOW) == Archived(0, 0)


def test_a_state_too_large_for_one_event_stays_a_log(
    conversation: Conversation, monkeypatch: pytest.MonkeyPatch
):
    run = grown(conversation, Status.DONE)
    kept = log(run)
    monkeypatch.setattr(projection, "MAX_SNAPSHOT", 5)
    assert retention.archive(NOW) == Archived(1, 0)
    assert log(run) == kept


def test_a_snapshot_that_the_database_refuses_leaves_the_log(
    conversation: Conversation, monkeypatch: pytest.MonkeyPatch
):
    run = grown(conversation, Status.DONE)
    kept = log(run)

    def refuse(*_args):
        raise DataError("too large")

    monkeypatch.setattr(type(Message.objects.all()), "replace", refuse)
    assert retention.archive(NOW) == Archived(1, 0)
    assert log(run) == kept
    assert retention.archive(NOW) == Archived(0, 0)


def test_a_batch_takes_the_oldest_and_no_more_than_it_should(conversation: Conversation):
    for hours in (3, 9, 6):
        in_time(run_in(conversation, Status.DONE), hours=hours)
    assert retention.archive(NOW, most=2).runs == 2
    left = Run.objects.filter(archived_at=None).values_list("turn", flat=True)
    assert list(left) == [1]


def test_a_long_log_costs_few_statements(conversation: Conversation, django_assert_max_num_queries):
    run = run_in(conversation, Status.STREAMING)
    for _ in range(30):
        write(run, *(events.delta("word ") for _ in range(40)))
    finish(run)
    with django_assert_max_num_queries(14) as captured:
        assert retention.archive(NOW) == Archived(1, 1201)
    assert isinstance(captured, CaptureQueriesContext)
    assert log(run)[0].data["text"] == "so far " + "word " * 1200


def test_the_command_says_what_it_would_do_and_what_it_did(
    conversation: Conversation, settings: object
):
    in_time(grown(conversation, Status.DONE), hours=7)
    in_time(run_in(conversation, Status.CANCELLED), hours=7)
    in_time(grown(conversation, Status.DONE), hours=1)
    rows = Message.objects.count()

    def archive(*options):
        out = StringIO()
        call_command("archive_runs", *options, stdout=out)
        return out.getvalue()

    assert archive("--dry-run") == "2 runs to archive: up to 10 rows less.\n"
    assert Message.objects.count() == rows
    assert archive() == "2 runs archived: 10 rows less.\n"
    assert Message.objects.count() == rows - 10
    assert archive() == "0 runs archived: 0 rows less.\n"


@pytest.mark.django_db(transaction=True)
async def test_a_worker_archives_by_itself(koda):
    koda(fragment_retention=0)
    run = await db(lambda: grown(Conversation.objects.create(), Status.DONE))
    held = await db(lambda: run_in(Conversation.objects.create(), Status.STREAMING))
    kept = await db(log, held)
    rows: list[int] = []
    async with working():
        while rows[-1:] != [2]:
            rows.append(len(await db(log, run)))
            await until(lambda: True, "a moment")
    assert await db(log, held) == kept


def test_the_admin_shows_a_collapsed_run_once_and_says_so(
    admin: Client, conversation: Conversation
):
    run = run_in(conversation, Status.STREAMING)
    for _ in range(4):
        write(run, *(events.delta("word ") for _ in range(40)))
    finish(run)
    run.refresh_from_db()
    assert "collapsed" not in text(admin, page_url(run))
    retention.archive(NOW)
    page = text(admin, page_url(run))
    rows = page.partition('id="log"')[2]
    assert rows.count("<td>snapshot</td>") == rows.count("<td>run_completed</td>") == 1
    assert "what lies between" not in rows
    assert page.count("The log was collapsed") == 2
