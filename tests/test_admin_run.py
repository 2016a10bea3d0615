"""The page of a run: its time line, its log, and nothing that could be mistaken for markup."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models.functions import Now
from django.test import Client
from django.urls import reverse

from runs import events, reports
from runs.events import RestartReason
from runs.models import Conversation, Run, RunInput
from runs.states import Status
from tests.admin_pages import HOSTILE, LIST, OVERVIEW, page_url, text
from tests.fakes import pending_run, run_in, write

# The time line


def test_the_time_line_tells_a_run_from_queue_to_end(admin: Client, conversation: Conversation):
    run = run_in(conversation, Status.STREAMING)
    write(run, events.tool_started(tool_call_id="c1", name="find_order", input={}))
    RunInput.objects.create(run=run, conversation=conversation, position=1, text="no, the other")
    write(
        run,
        events.tool_failed(tool_call_id="c1", error="interrupted"),
        events.run_restarted(reason=RestartReason.MERGED, attempt=1, inputs=["hello"]),
    )
    Run.objects.cancel(run.pk, reason="user")

    line = text(admin, page_url(run)).partition("Time line")[2].partition("Facts")[0]
    told = (
        "queued",
        "claimed",
        "first token",
        "tool started",
        "find_order",
        "tool failed",
        "merged, attempt 1",
        ">cancelled",
    )
    steps = line.partition("<table")[2]
    places = [steps.find(word) for word in told]
    assert -1 not in places
    assert places == sorted(places)
    assert "no, the other" in steps
    assert line.count('class="writing"') == 1
    assert line.count('class="cut"') == 1


def test_a_bar_keeps_its_points_in_a_language_with_commas(
    admin: Client, conversation: Conversation
):
    run = run_in(conversation, Status.DONE)
    answer = admin.get(page_url(run), headers={"accept-language": "de"})
    page = answer.content.decode()
    assert 'x="0.00%"' in page
    assert "0,00%" not in page


def test_who_holds_a_run_is_told_with_the_end_of_the_lease(
    admin: Client, conversation: Conversation
):
    run = run_in(conversation, Status.RUNNING, worker="host/1/abc")
    page = text(admin, page_url(run))
    assert "host/1/abc" in page
    assert "for another" in page
    Run.objects.filter(pk=run.pk).update(lease_expires_at=Now() - timedelta(minutes=5))
    assert "over since" in text(admin, page_url(run))


def test_a_failed_run_shows_why(admin: Client, conversation: Conversation):
    page = text(admin, page_url(run_in(conversation, Status.FAILED)))
    assert "It broke." in page
    assert "broken" in page


def test_hostile_text_stays_text_everywhere(admin: Client, conversation: Conversation):
    run = pending_run(conversation, HOSTILE, HOSTILE, agent=HOSTILE)
    Run.objects.claim(worker=HOSTILE, lease=timedelta(seconds=30))
    write(
        run,
        events.delta(HOSTILE),
        events.tool_started(tool_call_id=HOSTILE, name=HOSTILE, input=HOSTILE),
        events.tool_failed(tool_call_id=HOSTILE, error=HOSTILE),
        to=Status.STREAMING,
    )
    Conversation.objects.filter(pk=conversation.pk).update(title=HOSTILE, agent=HOSTILE)
    reports.report(HOSTILE, concurrency=1, running=1)
    pages = [LIST, page_url(run), OVERVIEW]
    pages += [reverse("admin:koda_runs_conversation_changelist")]
    pages += [reverse("admin:koda_runs_conversation_change", args=[conversation.pk])]
    for url in pages:
        page = text(admin, url)
        assert HOSTILE not in page
        assert "&lt;script&gt;alert(1)" in page
    Run.objects.fail(run.pk, code=HOSTILE, message=HOSTILE)
    assert HOSTILE not in text(admin, page_url(run))


def test_no_page_carries_a_style_or_script_of_its_own(admin: Client, conversation: Conversation):
    run = run_in(conversation, Status.DONE)
    for url in (LIST, page_url(run), OVERVIEW):
        page = text(admin, url)
        assert "<style" not in page
        assert " style=" not in page
        assert "<script>" not in page
        assert " onclick=" not in page


# The log


def test_a_long_log_shows_both_ends_and_leads_to_the_rest(
    admin: Client, conversation: Conversation
):
    run = run_in(conversation, Status.STREAMING)
    for number in range(30):
        write(run, *[events.delta(f"w{number}.{i};") for i in range(10)])
    ends = text(admin, page_url(run))
    assert "w0.0;" in ends
    assert "w29.9;" in ends
    assert "w15.0;" not in ends
    assert "?log=50#log" in ends

    found = "".join(text(admin, page_url(run), log=start) for start in (0, 100, 200, 300))
    assert all(f"w{number}.{i};" in found for number in range(30) for i in range(10))
    assert "?log=200#log" in text(admin, page_url(run), log=100)


@pytest.mark.parametrize("start", ["-1", "x", "9" * 40, "٣", ""])
def test_nonsense_for_a_place_in_the_log_shows_both_ends(
    admin: Client, conversation: Conversation, start: str
):
    run = run_in(conversation, Status.STREAMING)
    assert "run_started" in text(admin, page_url(run), log=start)


def test_a_huge_payload_is_cut(admin: Client, conversation: Conversation):
    run = run_in(conversation, Status.STREAMING)
    write(run, events.tool_completed(tool_call_id="c1", output="x" * 50_000))
    page = text(admin, page_url(run))
    assert len(page) < 50_000
    assert "50," in page
    assert "characters)" in page
