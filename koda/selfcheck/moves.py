"""Check 1: every move that a run may not make is tried, through the doors that there are."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db import IntegrityError, transaction

from koda.selfcheck.client import CheckFailed
from runs import events
from runs.events import Event
from runs.models import Conversation, Message, Run
from runs.states import Status
from runs.writes import Append, Ending

MOVES = {
    Status.PENDING: {Status.RUNNING, Status.CANCELLED, Status.FAILED},
    Status.RUNNING: {Status.STREAMING, Status.DONE, Status.FAILED, Status.CANCELLED},
    Status.STREAMING: {Status.DONE, Status.FAILED, Status.CANCELLED},
    Status.DONE: set(),
    Status.FAILED: set(),
    Status.CANCELLED: set(),
}
"""The promise, written down once more: the code's own table is what is checked."""

WAY_TO: dict[Status, list[Status]] = {
    Status.PENDING: [],
    Status.RUNNING: [Status.RUNNING],
    Status.STREAMING: [Status.RUNNING, Status.STREAMING],
    Status.DONE: [Status.RUNNING, Status.STREAMING, Status.DONE],
    Status.FAILED: [Status.RUNNING, Status.FAILED],
    Status.CANCELLED: [Status.CANCELLED],
}

EVENTS: dict[Status, Event] = {
    Status.PENDING: events.delta("late"),
    Status.RUNNING: events.run_started(attempt=0, agent="demo"),
    Status.STREAMING: events.delta("late"),
    Status.DONE: events.run_completed(finish_reason="stop", usage=None),
    Status.FAILED: events.run_failed(code="late", message="late"),
    Status.CANCELLED: events.run_cancelled(reason="late"),
}

LEASE = timedelta(hours=1)


def illegal_moves() -> str:
    """Try all 36 pairs. Rolled back in the end: no worker ever sees these runs."""
    with transaction.atomic():
        wrong = [fault for source in Status for to in Status if (fault := _try(source, to))]
        wrong += [fault for source in Status if not MOVES[source] and (fault := _knock(source))]
        transaction.set_rollback(True)
    if wrong:
        raise CheckFailed(f"{len(wrong)} moves went wrong, the first one: {wrong[0]}")
    legal = sum(map(len, MOVES.values()))
    return (
        f"{len(Status) ** 2 - legal} illegal moves refused without a trace, done→streaming and "
        f"pending→streaming among them; the {legal} legal ones went through"
    )


def _try(source: Status, to: Status) -> str:
    """Append an event that moves a run from `source` to `to`; what went wrong, or nothing."""
    run = _run_in(source)
    before = _trace(run)
    try:
        refused = _append(run, to)
    except IntegrityError as error:
        return f"{source}→{to} was stopped by the database alone ({error})"
    after = _trace(run)
    if to in MOVES[source]:
        moved = refused is None and after["status"] == to
        return "" if moved else f"{source}→{to} is legal and was refused: {refused}"
    if refused is None:
        return f"{source}→{to} was not refused"
    return "" if after == before else f"{source}→{to} was refused and left a trace: {after}"


def _knock(source: Status) -> str:
    """Cancel and fail a finished run from outside: it comes back as it is."""
    run = _run_in(source)
    before = _trace(run)
    cancelled = Run.objects.cancel(run.pk, reason="late")
    failed = Run.objects.fail(run.pk, code="late", message="late")
    if cancelled.published or failed.published or _trace(run) != before:
        return f"a run that was {source} was ended once more"
    return ""


def _run_in(status: Status) -> Run:
    """A run of its own conversation, brought there by legal moves."""
    conversation = Conversation.objects.create()
    run = Run.objects.create(conversation=conversation, turn=1, agent="demo", input_count=1)
    for step in WAY_TO[status]:
        if refused := _append(run, step):
            raise CheckFailed(f"the way to {status} is barred at {step}: {refused}")
    return run


def _append(run: Run, to: Status) -> Exception | None:
    run.refresh_from_db()
    over = not MOVES[to]
    [refused] = Run.objects.append(
        [
            Append(
                run_id=run.pk,
                attempt=run.attempt,
                worker="selfcheck",
                seq=run.next_seq,
                events=[EVENTS[to]],
                to=to,
                ending=Ending("", finish_reason="late") if over else None,
            )
        ],
        lease=LEASE,
    )
    return refused


def _trace(run: Run) -> dict[str, Any]:
    """Everything that the database knows of a run."""
    [row] = Run.objects.filter(pk=run.pk).values()
    return {**row, "events": Message.objects.filter(run_id=run.pk).count()}
