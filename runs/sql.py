"""SQL by hand, for the two writes that everything waits for: one statement each, on Postgres.

The ORM needs two statements for each run of a flush, and six for a claim. Measured with a hundred
runs in a flush, one for all takes a twentieth of the time. SQLite cannot insert within a query and
pays nothing for a round trip; there the manager takes the ORM's way, which is the reference: the
same tests hold both.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import connection

from runs.events import EventType
from runs.jsontext import dumps
from runs.states import Status
from runs.writes import Append

if TYPE_CHECKING:
    from runs.models import Run

APPEND = """
WITH wanted AS (
    SELECT * FROM unnest(
        %(runs)s::uuid[], %(attempts)s::int[], %(seqs)s::bigint[], %(counts)s::int[],
        %(streams)s::bool[], %(has_text)s::bool[]
    ) AS wanted (run_id, attempt, seq, count, streams, has_text)
), moved AS (
    UPDATE koda_runs AS run
    SET next_seq = run.next_seq + wanted.count,
        lease_expires_at = statement_timestamp() + %(lease)s,
        status = CASE WHEN wanted.streams THEN %(streaming)s ELSE run.status END,
        first_token_at = CASE
            WHEN wanted.has_text THEN coalesce(run.first_token_at, statement_timestamp())
            ELSE run.first_token_at
        END
    FROM wanted
    WHERE run.id = wanted.run_id
      AND run.attempt = wanted.attempt
      AND run.next_seq = wanted.seq
      AND run.status = ANY (
          CASE WHEN wanted.streams THEN %(may_stream)s::text[] ELSE %(may_stay)s::text[] END
      )
    RETURNING run.id
), written AS (
    INSERT INTO koda_messages (run_id, seq, type, data)
    SELECT event.run_id, event.seq, event.type, event.data::jsonb
    FROM unnest(
        %(event_runs)s::uuid[], %(event_seqs)s::bigint[], %(types)s::text[], %(data)s::text[]
    ) AS event (run_id, seq, type, data)
    JOIN moved ON moved.id = event.run_id
)
SELECT id FROM moved
"""
"""The guarded write for many runs at once: moves every row that is as its writer believes, and
inserts the events of just those. Answers with their ids."""

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

MOVES = (None, Status.STREAMING)
"""Where this statement can take a run."""


def parted(batch: Sequence[Append]) -> tuple[list[Append], list[Append]]:
    """What `append` can store here, and what is left to the ORM: ends of runs, all on SQLite."""
    if connection.vendor != "postgresql":
        return [], list(batch)
    at_once: list[Append] = []
    one_by_one: list[Append] = []
    for entry in batch:
        fits = entry.to in MOVES and entry.consumed is None and entry.ending is None
        (at_once if fits else one_by_one).append(entry)
    return at_once, one_by_one


def append(
    entries: Sequence[Append],
    *,
    lease: timedelta,
    may_stream: Collection[Status],
    may_stay: Collection[Status],
) -> set[UUID]:
    """Store entries that do not end their runs, at most one for each run; the runs that took it.

    One statement, and so one transaction. `may_stream` and `may_stay` are the statuses from which
    a run may begin to stream, or take events as it is.
    """
    events = [
        (entry.run_id, entry.seq + place, event.type, dumps(event.data).decode())
        for entry in entries
        for place, event in enumerate(entry.events)
    ]
    runs, seqs, types, data = map(list, zip(*events, strict=True))
    parameters: dict[str, Any] = {
        "runs": [entry.run_id for entry in entries],
        "attempts": [entry.attempt for entry in entries],
        "seqs": [entry.seq for entry in entries],
        "counts": [len(entry.events) for entry in entries],
        "streams": [entry.to == Status.STREAMING for entry in entries],
        "has_text": [entry.has_text for entry in entries],
        "lease": lease,
        "streaming": Status.STREAMING.value,
        "may_stream": [status.value for status in may_stream],
        "may_stay": [status.value for status in may_stay],
        "event_runs": runs,
        "event_seqs": seqs,
        "types": types,
        "data": data,
    }
    with connection.cursor() as cursor:
        cursor.execute(APPEND, parameters)
        return {run_id for (run_id,) in cursor.fetchall()}


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
