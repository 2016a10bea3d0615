"""The admin shows runs; what it may do to them goes through the services."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from runs import events, reports
from runs.admin import parts
from runs.admin.parts import first_id_at
from runs.models import Conversation, Run
from runs.states import Status
from tests.admin_pages import LIST, OVERVIEW, page_url, text
from tests.fakes import pending_run, run_in, write


def elsewhere() -> Conversation:
    return Conversation.objects.create(visitor_key="visitor")


def queries(client: Client, url: str, **query: object) -> int:
    with CaptureQueriesContext(
        connection,
    ) as captured:
        text(client, url, **query)
    return len(captured)


# The list


def test_runs_are_listed_with_their_status(admin: Client, conversation: Conversation):
    run = run_in(conversation, Status.STREAMING)
    page = text(admin, LIST)
    assert str(run.pk) in page
    assert "streaming" in page
    assert "w1" in page


@pytest.mark.parametrize("status", Status)
def test_the_list_narrows_to_a_status(admin: Client, conversation: Conversation, status: Status):
    other = run_in(conversation, Status.DONE if status != Status.DONE else Status.FAILED)
    wanted = run_in(elsewhere(), status)
    page = text(admin, LIST, status=status)
    assert str(wanted.pk) in page
    assert str(other.pk) not in page


def test_open_means_all_that_is_not_over(admin: Client, conversation: Conversation):
    over = run_in(conversation, Status.DONE)
    opened = [run_in(elsewhere(), Status.STREAMING), run_in(elsewhere(), Status.PENDING)]
    page = text(admin, LIST, status="open")
    assert all(str(run.pk) in page for run in opened)
    assert str(over.pk) not in page


def test_the_list_narrows_to_an_agent_even_one_that_is_gone(
    admin: Client, conversation: Conversation
):
    gone = pending_run(conversation, agent="retired")
    there = pending_run(elsewhere(), agent="demo")
    page = text(admin, LIST, agent="retired")
    assert str(gone.pk) in page
    assert str(there.pk) not in page


def test_the_list_narrows_to_an_age(admin: Client, conversation: Conversation):
    young = pending_run(conversation)
    then = timezone.now() - timedelta(days=30)
    old = Run.objects.create(
        id=UUID(int=first_id_at(then).int + 1), conversation=elsewhere(), turn=1, agent="demo"
    )
    Run.objects.filter(pk=old.pk).update(created_at=Now() - timedelta(days=30))
    for age in ("hour", "day", "week"):
        page = text(admin, LIST, age=age)
        assert str(young.pk) in page
        assert str(old.pk) not in page
    page = text(admin, LIST, age="older")
    assert str(old.pk) in page
    assert str(young.pk) not in page


@pytest.mark.parametrize("name", ["status", "agent", "age", "q", "p", "o"])
def test_nonsense_in_the_address_breaks_nothing(
    admin: Client, conversation: Conversation, name: str
):
    pending_run(conversation)
    for nonsense in ("nonsense", "%", "9" * 30, "\N{PILE OF POO}", "-1.-2", "\0"):
        assert admin.get(LIST, {name: nonsense}, follow=True).status_code == 200


# Looking for a run


def test_a_run_is_found_by_its_id_or_its_conversation(admin: Client, conversation: Conversation):
    run, other = pending_run(conversation), pending_run(elsewhere())
    for id in (str(run.pk), f" {run.pk} ", run.pk.hex, str(conversation.pk)):
        page = text(admin, LIST, q=id)
        assert page_url(run) in page
        assert page_url(other) not in page


def test_a_run_is_found_by_the_words_of_any_input(admin: Client, conversation: Conversation):
    run = pending_run(conversation, "where is my order", "the Blue One")
    other = pending_run(elsewhere(), "something else")
    page = text(admin, LIST, q="blue one")
    assert page_url(run) in page
    assert page_url(other) not in page


def test_words_are_looked_for_in_the_newest_inputs_only(
    admin: Client, conversation: Conversation, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("runs.admin.run.SEARCHED", 1)
    old, new = pending_run(conversation, "same words"), pending_run(elsewhere(), "same words")
    page = text(admin, LIST, q="same words")
    assert page_url(new) in page
    assert page_url(old) not in page


def test_an_id_that_nobody_has_finds_nothing(admin: Client, conversation: Conversation):
    pending_run(conversation)
    assert "0 runs" in " ".join(text(admin, LIST, q=str(uuid4())).split())


# What it costs


def test_a_longer_list_asks_no_more_questions(admin: Client, conversation: Conversation):
    for _ in range(2):
        run_in(elsewhere(), Status.DONE)
    short = queries(admin, LIST)
    for _ in range(10):
        run_in(elsewhere(), Status.STREAMING)
    assert queries(admin, LIST) == short <= 4  # session, user, count, rows


@pytest.mark.parametrize(
    "query", [{"status": "open"}, {"agent": "demo"}, {"age": "day"}, {"q": "hello"}]
)
def test_a_narrowed_list_asks_no_more_questions(
    admin: Client, conversation: Conversation, query: dict[str, str]
):
    run_in(conversation, Status.DONE)
    assert queries(admin, LIST, **query) <= 4


def test_no_list_counts_the_whole_table(
    admin: Client, conversation: Conversation, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(parts, "COUNTED", 3)
    for _ in range(5):
        pending_run(conversation)
    with CaptureQueriesContext(connection) as captured:
        page = text(admin, LIST)
    counts = [query["sql"] for query in captured if "COUNT(" in query["sql"]]
    assert len(counts) == 1
    assert "LIMIT 3" in counts[0]
    assert " ".join(page.split()).count("the newest 3 runs") == 1


def test_the_bulk_of_runs_is_not_read_for_a_list(admin: Client, conversation: Conversation):
    run_in(conversation, Status.DONE)
    with CaptureQueriesContext(connection) as captured:
        text(admin, LIST)
    assert not [query for query in captured if '"output"' in query["sql"]]


def test_a_longer_log_asks_no_more_questions(admin: Client, conversation: Conversation):
    run = run_in(conversation, Status.STREAMING)
    text(admin, page_url(run))  # Django remembers content types from here on
    short = queries(admin, page_url(run))
    for number in range(150):
        write(run, events.delta(f"{number} "))
    assert queries(admin, page_url(run)) <= short + 1  # the two ends of the log
    assert short <= 8


def test_the_overview_asks_a_fixed_number_of_questions(admin: Client, conversation: Conversation):
    few = queries(admin, OVERVIEW)
    for number in range(5):
        run_in(elsewhere(), Status.DONE)
        reports.report(f"w{number}", concurrency=20, running=1)
    for _ in range(5):
        pending_run(elsewhere())
    assert queries(admin, OVERVIEW) == few <= 7


# Read-only


def test_a_run_is_changed_by_no_form(admin: Client, conversation: Conversation):
    run = run_in(conversation, Status.STREAMING)
    assert 'name="_save"' not in text(admin, page_url(run))
    assert admin.post(page_url(run), {"status": "done"}).status_code == 403
    run.refresh_from_db()
    assert run.status == Status.STREAMING


def test_nothing_can_be_added_or_deleted(admin: Client, conversation: Conversation):
    run = run_in(conversation, Status.DONE)
    assert admin.get(reverse("admin:koda_runs_run_add")).status_code == 403
    assert admin.get(reverse("admin:koda_runs_run_delete", args=[run.pk])).status_code == 403


def test_a_run_that_is_not_there_leads_back(admin: Client):
    url = reverse("admin:koda_runs_run_change", args=[uuid4()])
    assert admin.get(url).status_code == 302


def test_the_admin_asks_who_you_are(client: Client, db: None):
    for url in (LIST, OVERVIEW):
        assert client.get(url).status_code == 302
