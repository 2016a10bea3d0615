"""Retention: of a run that has been over for long, the log is collapsed.

The terminal event stays. One snapshot takes the place of all others, under the number of the last
of them: old cursors find it, new ones need it not, and the end of the log is where it was.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.db import DatabaseError
from django.db.models import Sum
from django.db.models.functions import Now

from runs.models import Message, Run
from runs.projection import MAX_SNAPSHOT, Projection
from runs.reducer import ReducerError
from runs.threads import DatabaseThreads, passes
from runs.transactions import write_transaction

logger = logging.getLogger(__name__)

BATCH = 20
"""Runs that are looked up at once, and that a worker which is told to stop may still archive."""

LEISURE = 4
"""A worker rests so many times as long as a batch took it."""

MOST_PAUSE, LEAST_PAUSE = 60.0, 1.0
"""Seconds between two looks for runs to archive."""


@dataclass(frozen=True, slots=True)
class Archived:
    """What a batch did, or would do."""

    runs: int
    events: int
    """Rows of the log that are gone."""


def archive(age: timedelta, *, most: int = BATCH) -> Archived:
    """Archive at most `most` of the runs that have been over for `age`, each in a transaction.

    It may be broken off at any point and run in several processes at once. No runs in the answer
    means that there are none left.
    """
    due = list(Run.objects.to_archive(age).values_list("pk", "next_seq")[:most])
    random.shuffle(due)  # so that several workers seldom fold the same one
    return Archived(len(due), sum(archive_run(run_id, next_seq) for run_id, next_seq in due))


def outlook(age: timedelta) -> Archived:
    """What archiving everything would do, at most: a log that cannot be collapsed stays."""
    due = Run.objects.to_archive(age).order_by().filter(next_seq__gt=2)
    events = due.aggregate(all=Sum("next_seq"))["all"] or 0
    return Archived(Run.objects.to_archive(age).count(), events - 2 * due.count())


def archive_run(run_id: UUID, next_seq: int) -> int:
    """Collapse the log of a finished run; returns how many rows less it has.

    A finished log changes no more, so it is folded before the transaction. Raises DatabaseError
    while the database is away.
    """
    projection = _fold(run_id, next_seq - 1)
    try:
        return _store(run_id, projection)
    except DatabaseError as error:
        if passes(error):
            raise
        logger.error("run %s: log kept, the database refuses its snapshot: %s", run_id, error)  # noqa: TRY400
        return _store(run_id, None)


def _store(run_id: UUID, projection: Projection | None) -> int:
    with write_transaction():
        hit = Run.objects.filter(pk=run_id, archived_at=None, finished_at__isnull=False).update(
            archived_at=Now(), tool_order=projection and projection.ended_tools
        )
        if not hit or projection is None:
            return 0
        return Message.objects.all().replace(run_id, projection.snapshot())


def _fold(run_id: UUID, end: int) -> Projection | None:
    """All but the terminal event, whose number is `end`; None if the log has to stay as it is."""
    projection = Projection(str(run_id))
    try:
        for page in Message.objects.all().pages(run_id):
            projection.extend(page)
            if projection.too_large:
                logger.info("run %s: log kept, %d characters are too many", run_id, MAX_SNAPSHOT)
                return None
    except ReducerError as error:
        logger.error("run %s: log kept, it does not add up: %s", run_id, error)  # noqa: TRY400
        return None
    if projection.next_seq != end:
        logger.error("run %s: log kept, it ends before %d", run_id, end)
        return None
    return projection if end > 0 else None


async def archive_forever(age: timedelta) -> None:
    """Archive what is due, now and then, on a thread of its own and at leisure."""
    threads = DatabaseThreads("koda-retention", threads=1, keep=False)
    pause = min(MOST_PAUSE, max(LEAST_PAUSE, age.total_seconds() / 10))
    try:
        while True:
            await asyncio.sleep(pause * random.uniform(0.5, 1.5))
            try:
                await _archive_all(threads, age)
            except Exception as error:  # noqa: BLE001 - answers are worth more than tidiness
                logger.warning("nothing archived, trying again: %s", error)
    finally:
        await asyncio.to_thread(threads.close)


async def _archive_all(threads: DatabaseThreads, age: timedelta) -> None:
    runs = events = 0
    while True:
        begun = time.monotonic()
        done = await threads(archive, age)
        if not done.runs:
            break
        runs, events = runs + done.runs, events + done.events
        await asyncio.sleep(LEISURE * (time.monotonic() - begun))
    if runs:
        logger.info("archived %d runs: %d rows less", runs, events)
