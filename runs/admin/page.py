"""What the page of one run shows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.urls import reverse
from django.utils.safestring import SafeString

from runs.admin.log import is_collapsed, pretty
from runs.admin.parts import EMPTY, cut, link, moment, rough, seconds, since
from runs.admin.timeline import TimeLine, facts_of, time_line
from runs.models import Run, RunInput

LONGEST = 50_000
"""Characters of an output that are shown."""

INPUTS = 50

Fact = tuple[str, str | SafeString]


@dataclass(frozen=True, slots=True)
class RunPage:
    line: TimeLine
    inputs: list[RunInput]
    more_inputs: int
    output: str
    error: str
    usage: str
    metadata: str
    replaced_by: Run | None
    is_newest: bool
    collapsed: bool


def page_of(run: Run, *, now: datetime) -> RunPage:
    inputs = list(run.inputs.order_by("position")[:INPUTS])
    later = Run.objects.filter(conversation=run.conversation_id, turn__gt=run.turn)
    return RunPage(
        line=time_line(run, facts_of(run), inputs[1:], now=now),
        inputs=inputs,
        more_inputs=max(0, run.input_count - len(inputs)),
        output=cut(run.output, LONGEST),
        error=pretty(run.error) if run.error else "",
        usage=pretty(run.usage) if run.usage else "",
        metadata=pretty(run.metadata) if run.metadata else "",
        replaced_by=Run.objects.filter(replaces=run.pk).only("id").first(),
        is_newest=not later.exists(),
        collapsed=is_collapsed(run),
    )


def facts_about(run: Run, *, now: datetime) -> list[Fact]:
    conversation = reverse("admin:koda_runs_conversation_change", args=[run.conversation_id])
    return [
        ("Conversation", link(conversation, run.conversation_id)),
        ("Turn", str(run.turn)),
        ("Agent", run.agent),
        ("Attempt", f"{run.attempt} (tries: {run.tries})"),
        ("Created", moment(run.created_at)),
        ("Waited", seconds(since(run.created_at, run.started_at))),
        ("Time to first token", seconds(since(run.started_at, run.first_token_at))),
        ("Duration", _duration(run, now)),
        ("Held by", run.claimed_by or EMPTY),
        ("Lease", _lease(run, now)),
        ("Ended because of", run.finish_reason or EMPTY),
        ("Events", f"{run.next_seq:,}"),
        ("Archived", moment(run.archived_at) if run.archived_at else EMPTY),
    ]


def _duration(run: Run, now: datetime) -> str:
    if run.finished_at:
        return seconds(run.finished_at - run.created_at)
    return f"{rough(now - run.created_at)} so far"


def _lease(run: Run, now: datetime) -> str:
    until = run.lease_expires_at
    if until is None:
        return EMPTY
    if until > now:
        return f"until {moment(until)}, for another {rough(until - now)}"
    return f"over since {moment(until)}, for {rough(now - until)}"
