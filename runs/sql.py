"""SQL by hand, for the one write that all others wait for.

The ORM needs two statements for each run of a flush, SQL one for all of them: measured on
Postgres with a hundred runs in a flush, a twentieth of the time. SQLite cannot insert within a
query and pays nothing for a round trip; there `RunManager.append` takes the ORM's way, which is
the reference: the same tests hold both.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import connection

from runs.jsontext import dumps
from runs.states import Status
from runs.writes import Append

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
