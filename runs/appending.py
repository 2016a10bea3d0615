"""A worker's way into the log, for all its runs at once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import connection
from django.db.models import F, Q
from django.db.models.functions import Coalesce, Now

from runs import events, sql, states
from runs.door import Door
from runs.errors import (
    AlreadyFinished,
    Gone,
    IllegalTransition,
    InputGrew,
    KodaError,
    Superseded,
)
from runs.transactions import write_transaction
from runs.writes import Append, Ending

if TYPE_CHECKING:
    from runs.models import Message, Run


class Appending(Door):
    """The guarded append."""

    def append(self, batch: Sequence[Append], *, lease: timedelta) -> list[KodaError | None]:
        """Add events to the logs of several runs at once: the only way in for a worker.

        One answer for each entry: None means that it is stored, anything else says why the run
        did not take it. Entries for different runs do not affect one another.
        """
        if connection.vendor == "postgresql":
            stored = self._append_at_once(batch, lease=lease)
        else:
            with write_transaction():
                stored = self._append_one_by_one(batch, lease=lease)
        return [None if entry.run_id in stored else self._explain(entry) for entry in batch]

    def _append_at_once(self, batch: Sequence[Append], *, lease: timedelta) -> set[UUID]:
        """`_transition` and insert for all entries in one statement; the runs that took theirs."""
        stored = sql.append(batch, lease=lease, sources=self._from)
        for entry in batch:
            if entry.to in states.TERMINAL and entry.run_id in stored:
                self._count_ended(entry.to)
        return stored

    def _append_one_by_one(self, entries: Sequence[Append], *, lease: timedelta) -> set[UUID]:
        rows: list[Message] = []
        stored: set[UUID] = set()
        for entry in sorted(entries, key=lambda entry: entry.run_id):  # everybody's lock order
            if self._guarded_append(entry, lease=lease):
                stored.add(entry.run_id)
                numbered = events.numbered(entry.seq, entry.events)
                rows += self._messages().rows(entry.run_id, numbered)
        if rows:
            self._messages().bulk_create(rows)
        return stored

    def _guarded_append(self, entry: Append, *, lease: timedelta) -> int:
        guard = Q(pk=entry.run_id, attempt=entry.attempt, next_seq=entry.seq)
        if entry.consumed is not None:
            guard &= Q(input_count=entry.consumed)
        changes: dict[str, Any] = {
            "next_seq": F("next_seq") + len(entry.events),
            "lease_expires_at": Now() + lease,
        }
        if entry.has_text:
            changes["first_token_at"] = Coalesce(F("first_token_at"), Now())
        if entry.ending is not None:
            changes |= self._ending_columns(entry.ending)
        return self._transition(guard, to=entry.to, **changes)

    @staticmethod
    def _ending_columns(ending: Ending) -> dict[str, Any]:
        return {
            "output": ending.output,
            "finish_reason": ending.finish_reason,
            "error": ending.error,
            "usage": ending.usage,
        }

    def _explain(self, entry: Append) -> KodaError | None:
        """Why the guarded write hit nothing; None when an earlier try of it had committed."""
        run = self.filter(pk=entry.run_id).first()
        if run is None:
            return Gone(f"run {entry.run_id} was deleted")
        if run.attempt != entry.attempt:
            return Superseded(f"run {run.pk}: attempt {run.attempt} owns it now")
        if self._already_stored(entry, run):
            return None
        if run.is_terminal:
            return AlreadyFinished(f"run {run.pk} is {run.status}")
        if entry.consumed is not None and run.input_count != entry.consumed:
            return InputGrew(f"run {run.pk} has {run.input_count} inputs, not {entry.consumed}")
        if run.next_seq != entry.seq:
            return Superseded(f"run {run.pk} is at {run.next_seq}, not at {entry.seq}")
        return IllegalTransition(f"run {run.pk} cannot move from {run.status} to {entry.to}")

    def _already_stored(self, entry: Append, run: Run) -> bool:
        """Whether a commit whose answer was lost did take place."""
        if run.next_seq != entry.seq + len(entry.events):
            return False
        stored = self._messages().log(entry.run_id, start=entry.seq)
        return [(e.type, e.data) for e in stored] == [(e.type, e.data) for e in entry.events]
