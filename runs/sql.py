"""SQL by hand, for the two writes that everything waits for: one statement each, on Postgres.

The ORM needs two statements for each run of a flush, and six for a claim. Measured with a hundred
runs in a flush, one for all takes a twentieth of the time. SQLite cannot insert within a query and
pays nothing for a round trip; there the manager takes the ORM's way, which is the reference: the
same tests hold both.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any
from uuid import UUID
from weakref import WeakKeyDictionary, WeakSet
from zlib import crc32

from django.db import ProgrammingError, connection
from django.db.backends.utils import CursorWrapper

from runs.events import EventType
from runs.jsontext import dumps
from runs.states import Status
from runs.threads import sqlstate
from runs.writes import Append

if TYPE_CHECKING:
    from runs.models import Run

APPEND = """
WITH wanted AS (
    SELECT * FROM jsonb_to_recordset(%(entries)s::jsonb) AS wanted (
        run_id uuid, attempt int, seq bigint, count int, events jsonb, has_text bool,
        sources jsonb, status text, consumed int,
        ends bool, output text, finish_reason text, error jsonb, usage jsonb
    )
), moved AS (
    UPDATE koda_runs AS run
    SET next_seq = run.next_seq + wanted.count,
        status = coalesce(wanted.status, run.status),
        first_token_at = CASE
            WHEN wanted.has_text THEN coalesce(run.first_token_at, statement_timestamp())
            ELSE run.first_token_at
        END,
        lease_expires_at = CASE
            WHEN wanted.ends THEN NULL ELSE statement_timestamp() + %(lease)s
        END,
        claimed_by = CASE WHEN wanted.ends THEN '' ELSE run.claimed_by END,
        finished_at = CASE WHEN wanted.ends THEN statement_timestamp() ELSE run.finished_at END,
        output = CASE WHEN wanted.ends THEN wanted.output ELSE run.output END,
        finish_reason = CASE WHEN wanted.ends THEN wanted.finish_reason ELSE run.finish_reason END,
        error = CASE WHEN wanted.ends THEN wanted.error ELSE run.error END,
        usage = CASE WHEN wanted.ends THEN wanted.usage ELSE run.usage END
    FROM wanted
    WHERE run.id = wanted.run_id
      AND run.attempt = wanted.attempt
      AND run.next_seq = wanted.seq
      AND wanted.sources ? run.status
      AND run.input_count = coalesce(wanted.consumed, run.input_count)
    RETURNING run.id, wanted.seq, wanted.events
), written AS (
    INSERT INTO koda_messages (run_id, seq, type, data)
    SELECT moved.id, moved.seq + event.place - 1, event.pair ->> 0, event.pair -> 1
    FROM moved, jsonb_array_elements(moved.events) WITH ORDINALITY AS event (pair, place)
)
SELECT id FROM moved
"""
"""The guarded write for many runs at once: moves every row that is as its writer believes, to the
end of the run if that is what it wants, and inserts the events of just those. Answers with their
ids. One document of JSON costs a fifth of what arrays cost to bind, and less with more events."""

_NAME = f"koda_append_{crc32(APPEND.encode()):08x}"  # another version's has another name
PREPARE_APPEND = f"PREPARE {_NAME} (jsonb, interval) AS" + APPEND % {"entries": "$1", "lease": "$2"}
EXECUTE_APPEND = f"EXECUTE {_NAME} (%(entries)s, %(lease)s)"
DEALLOCATE_APPEND = f"DEALLOCATE {_NAME}"
"""APPEND, parsed and planned once for each session: for one run that is 0.2 of its 0.3 ms."""

RENEWED = 60.0
"""Seconds that a plan is used for: one made for empty tables may be a bad one for full ones."""

_NOT_THERE, _THERE_ALREADY = "26000", "42P05"
"""SQLSTATEs of a session that is not ours alone: a pooler between us and the server changed it."""

CLAIM = """
WITH next (id) AS (
    {claimable} FOR UPDATE OF koda_runs SKIP LOCKED
), claimed AS (
    UPDATE koda_runs AS run
    SET status = %s, attempt = attempt + 1, tries = tries + 1, next_seq = next_seq + 1,
        claimed_by = %s, lease_expires_at = statement_timestamp() + %s,
        started_at = statement_timestamp()
    FROM next
    WHERE run.id = next.id AND run.status = ANY (%s)
    RETURNING run.*
), written AS (
    INSERT INTO koda_messages (run_id, seq, type, data)
    SELECT id, next_seq - 1, %s, jsonb_build_object('attempt', attempt, 'agent', agent)
    FROM claimed
)
SELECT * FROM claimed
"""
"""Moves the first of the claimable runs to its worker and begins the new attempt's log. Answers
with the row. Which runs are claimable is the ORM's query."""


def append(
    entries: Sequence[Append],
    *,
    lease: timedelta,
    sources: Callable[[Status | None], Collection[Status]],
) -> set[UUID]:
    """Store the entries, at most one for each run; the runs that took theirs.

    One statement, and so one transaction. `sources` tells from which statuses a run may move to
    another one, or (None) take events as it is.
    """
    wanted = [_wanted(entry, sources(entry.to)) for entry in entries]
    parameters: dict[str, Any] = {"entries": dumps(wanted).decode(), "lease": lease}
    with connection.cursor() as cursor:
        _append(cursor, parameters)
        return {run_id for (run_id,) in cursor.fetchall()}


_prepared: WeakKeyDictionary[object, float] = WeakKeyDictionary()
"""The sessions that have APPEND prepared, and since when in monotonic seconds."""

_shared: WeakSet[object] = WeakSet()
"""The sessions that a pooler was found to change: nothing prepared lasts there."""


def _append(cursor: CursorWrapper, parameters: dict[str, Any]) -> None:
    """APPEND, prepared where that holds. Not within a transaction, which a failed try would end."""
    session = connection.connection
    if connection.in_atomic_block or session in _shared:
        cursor.execute(APPEND, parameters)
        return
    try:
        _prepare(cursor, session)
        cursor.execute(EXECUTE_APPEND, parameters)
    except ProgrammingError as error:
        if sqlstate(error) not in (_NOT_THERE, _THERE_ALREADY):
            raise
        _shared.add(session)
        cursor.execute(APPEND, parameters)


def _prepare(cursor: CursorWrapper, session: object) -> None:
    now = time.monotonic()
    since = _prepared.get(session)
    if since is not None and now < since + RENEWED:
        return
    if since is not None:
        cursor.execute(DEALLOCATE_APPEND)
    cursor.execute(PREPARE_APPEND)
    _prepared[session] = now


def _wanted(entry: Append, sources: Collection[Status]) -> dict[str, object]:
    """One of APPEND's entries. What is left out is null there."""
    wanted = {
        "run_id": str(entry.run_id),
        "attempt": entry.attempt,
        "seq": entry.seq,
        "count": len(entry.events),
        "events": [(event.type, event.data) for event in entry.events],
        "has_text": entry.has_text,
        "sources": list(sources),
        "status": entry.to,
        "consumed": entry.consumed,
    }
    return wanted if entry.ending is None else wanted | {"ends": True, **asdict(entry.ending)}


def claim(
    model: type[Run], *, worker: str, lease: timedelta, may_run: Collection[Status]
) -> Run | None:
    """The first claimable run that nobody else is taking, now this worker's; None for none.

    One statement, and so one transaction. Raises IntegrityError where two claims in one
    conversation meet.
    """
    statement, parameters = _claim_statement(model)
    changes = [
        Status.RUNNING.value,
        worker,
        lease,
        [status.value for status in may_run],
        EventType.RUN_STARTED.value,
    ]
    return next(iter(model.objects.raw(statement, [*parameters, *changes])), None)


@cache
def _claim_statement(model: type[Run]) -> tuple[str, tuple[Any, ...]]:
    """With its first parameters. Putting the query together would cost as much as asking it."""
    next_one, parameters = model.objects.claimable().values("pk")[:1].query.sql_with_params()
    return CLAIM.format(claimable=next_one), parameters
