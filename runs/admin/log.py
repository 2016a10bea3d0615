"""A stretch of a run's log, read without its bulk."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from django.db.models import TextField
from django.db.models.functions import Cast, Left, Length

from runs.admin.parts import moment
from runs.events import EventType
from runs.models import Message, Run

PAGE = 100
HALF = PAGE // 2
SHORT = 2_000
"""Characters of a payload that are read and shown."""


@dataclass(frozen=True, slots=True)
class Row:
    seq: int
    type: str
    at: str
    after: str
    data: str


@dataclass(frozen=True, slots=True)
class LogPage:
    """`head` and `tail` with a hole between them, or one stretch that is all `head`."""

    head: list[Row]
    tail: list[Row]
    previous: int | None = None
    """What to ask for to see the stretch before; None at the beginning."""
    next: int | None = None


def is_collapsed(run: Run) -> bool:
    """Whether a snapshot stands for all events but the last."""
    rows = Message.objects.filter(run_id=run.pk, seq=run.next_seq - 2)
    return run.archived_at is not None and rows.filter(type=EventType.SNAPSHOT).exists()


def first_and_last(run: Run) -> LogPage:
    """All of a short log, the two ends of a long one. One that was collapsed has two rows."""
    if run.next_seq <= PAGE or is_collapsed(run):
        return LogPage(_rows(run, start=0, count=PAGE), [])
    return LogPage(
        _rows(run, start=0, count=HALF),
        _rows(run, start=run.next_seq - HALF, count=HALF),
        next=HALF,
    )


def stretch(run: Run, start: int) -> LogPage:
    rows = _rows(run, start=start, count=PAGE)
    after = rows[-1].seq + 1 if rows else run.next_seq
    return LogPage(
        rows,
        [],
        previous=max(0, start - PAGE) if start > 0 else None,
        next=after if after < run.next_seq else None,
    )


def log_page(run: Run, start: str | None) -> LogPage:
    """`start` comes from the address; what is no number shows both ends."""
    if start is None or not (start.isascii() and start.isdecimal()) or len(start) > 18:
        return first_and_last(run)
    return stretch(run, int(start))


def _rows(run: Run, *, start: int, count: int) -> list[Row]:
    text = Cast("data", TextField())
    rows = (
        Message.objects.filter(run_id=run.pk, seq__gte=start)
        .order_by("seq")
        .values_list("seq", "type", "created_at", Left(text, SHORT), Length(text))
    )
    return [
        Row(
            seq,
            type,
            moment(at),
            f"+{(at - run.created_at).total_seconds():.3f}",
            _payload(head, length),
        )
        for seq, type, at, head, length in rows[:count]
    ]


def _payload(head: str, length: int) -> str:
    if length > len(head):
        return f"{head}… ({length:,} characters)"
    return pretty(json.loads(head))


def pretty(value: Any) -> str:  # noqa: ANN401
    """JSON on one line, with letters as letters."""
    return json.dumps(value, ensure_ascii=False)
