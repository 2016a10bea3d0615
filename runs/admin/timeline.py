"""A run's life in one look: phases and tools as a bar, and what happened when as a list."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db.models import TextField
from django.db.models.fields.json import KT
from django.db.models.functions import Cast, Left

from runs.admin.parts import moment, seconds, since
from runs.events import EventType
from runs.models import Message, Run, RunInput

MOST = 200
"""Restarts and tool events that are shown; a run with more has its log."""

SHORT = 200
"""Characters of what a step says."""

TELLING = (
    EventType.RUN_RESTARTED,
    EventType.TOOL_STARTED,
    EventType.TOOL_COMPLETED,
    EventType.TOOL_FAILED,
)


class Fact(NamedTuple):
    """A row of the log that the time line tells, without its payload's bulk."""

    type: str
    at: datetime
    reason: str | None = None
    attempt: str | None = None
    tool_call_id: str | None = None
    name: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """Something that happened. `kind` is its colour."""

    at: datetime
    kind: str
    what: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A step as the page shows it."""

    after: str
    at: str
    kind: str
    what: str
    detail: str


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of the bar. `x` and `width` are attributes of an SVG element."""

    kind: str
    name: str
    start: datetime
    end: datetime
    x: str = ""
    width: str = ""

    @property
    def took(self) -> str:
        return seconds(self.end - self.start)


@dataclass(slots=True)
class TimeLine:
    phases: list[Span]
    tools: list[Span]
    marks: list[Span]
    lines: list[Line] = field(default_factory=list)
    shortened: bool = False


def facts_of(run: Run) -> list[Fact]:
    """At most MOST + 1 of them, in order."""
    rows = (
        Message.objects.filter(run_id=run.pk, type__in=TELLING)
        .order_by("seq")
        .values_list(
            "type",
            "created_at",
            KT("data__reason"),
            Cast(KT("data__attempt"), TextField()),
            Left(KT("data__tool_call_id"), SHORT),
            Left(KT("data__name"), SHORT),
            Left(KT("data__error"), SHORT),
        )
    )
    return [Fact(*row) for row in rows[: MOST + 1]]


def time_line(
    run: Run, facts: list[Fact], corrections: Iterable[RunInput], *, now: datetime
) -> TimeLine:
    """`now` ends the bar of a run that is not over."""
    end = run.finished_at or now
    told = facts[:MOST]
    steps = sorted([*_steps(run, corrections), *_told(told)], key=lambda step: step.at)
    steps += _end(run)  # last, whatever the clock says of what was written together with it
    marks = [Span(step.kind, step.what, step.at, step.at) for step in steps if _is_mark(step)]
    scale = Scale(run.created_at, end)
    return TimeLine(
        phases=scale.fit(_phases(run, end)),
        tools=scale.fit(_tools(told, end)),
        marks=scale.fit(marks),
        lines=[_line(run, step) for step in steps],
        shortened=len(facts) > MOST,
    )


class Scale:
    """Places stretches of time on a bar that is 100 % wide."""

    def __init__(self, start: datetime, end: datetime) -> None:
        self._start = start
        self._whole = max(end - start, timedelta(milliseconds=1))

    def fit(self, spans: Iterable[Span]) -> list[Span]:
        return [
            Span(
                span.kind,
                span.name,
                span.start,
                span.end,
                x=self._percent(span.start - self._start),
                width=self._percent(span.end - span.start),
            )
            for span in spans
        ]

    def _percent(self, span: timedelta) -> str:
        """A string, so that no locale puts a comma into it."""
        return f"{min(100.0, max(0.0, span / self._whole * 100)):.2f}%"


def _phases(run: Run, end: datetime) -> Iterator[Span]:
    started, first = run.started_at, run.first_token_at
    yield Span("waiting", "waiting", run.created_at, started or end)
    if started:
        yield Span("thinking", "until the first token", started, first or end)
    if first:
        yield Span("writing", "from the first token on", first, end)


def _tools(facts: list[Fact], end: datetime) -> Iterator[Span]:
    """From start to result; a restart or the run's end closes what is open."""
    running: dict[str | None, Fact] = {}
    for fact in facts:
        if fact.type == EventType.TOOL_STARTED:
            running[fact.tool_call_id] = fact
        elif fact.type == EventType.RUN_RESTARTED:
            yield from (_tool("cut", tool, fact.at) for tool in running.values())
            running.clear()
        elif begun := running.pop(fact.tool_call_id, None):
            kind = "tool" if fact.type == EventType.TOOL_COMPLETED else "cut"
            yield _tool(kind, begun, fact.at)
    yield from (_tool("tool", tool, end) for tool in running.values())


def _tool(kind: str, begun: Fact, end: datetime) -> Span:
    return Span(kind, begun.name or "tool", begun.at, max(begun.at, end))


def _steps(run: Run, corrections: Iterable[RunInput]) -> Iterator[Step]:
    """What the run's own columns tell."""
    yield Step(run.created_at, "waiting", "queued", f"turn {run.turn}")
    if run.started_at:
        waited = seconds(since(run.created_at, run.started_at))
        yield Step(run.started_at, "thinking", "claimed", f"after waiting {waited}")
    if run.first_token_at:
        thought = seconds(since(run.started_at, run.first_token_at))
        yield Step(run.first_token_at, "writing", "first token", f"{thought} after the claim")
    for given in corrections:
        yield Step(given.created_at, "correction", "correction", given.text[:SHORT])


def _end(run: Run) -> Iterator[Step]:
    if run.finished_at:
        yield Step(run.finished_at, run.status, run.status, run.finish_reason)


def _told(facts: list[Fact]) -> Iterator[Step]:
    """What the log adds."""
    names = {fact.tool_call_id: fact.name for fact in facts if fact.name}
    for fact in facts:
        name = names.get(fact.tool_call_id) or fact.tool_call_id
        match fact.type:
            case EventType.RUN_RESTARTED:
                detail = f"{fact.reason}, attempt {fact.attempt}"
                yield Step(fact.at, "restart", "restarted", detail)
            case EventType.TOOL_STARTED:
                yield Step(fact.at, "tool", "tool started", f"{name}")
            case EventType.TOOL_COMPLETED:
                yield Step(fact.at, "tool", "tool completed", f"{name}")
            case EventType.TOOL_FAILED:
                yield Step(fact.at, "cut", "tool failed", f"{name}: {fact.error}")


def _is_mark(step: Step) -> bool:
    return step.kind in {"restart", "correction"}


def _line(run: Run, step: Step) -> Line:
    after = f"+{max(0.0, (step.at - run.created_at).total_seconds()):.3f} s"
    return Line(after, moment(step.at), step.kind, step.what, step.detail)
