"""The guarded writes. Everything that changes a run's status or log is one of these methods.

Compare-and-set is the transition: each write is a conditional UPDATE whose WHERE names what the
writer believes, and the row count is the answer. `_transition` builds every such WHERE from the
table in `runs.states`; nothing else writes `status`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, TypedDict
from uuid import UUID

from django.apps import apps
from django.db import IntegrityError, models, transaction
from django.db.models import F, Q
from django.db.models.functions import Coalesce, Now

from runs import events, merging, metrics, states
from runs.errors import (
    AlreadyFinished,
    Gone,
    IllegalTransition,
    InputGrew,
    KodaError,
    Superseded,
)
from runs.events import Data, Event, EventType, RestartReason, StoredEvent
from runs.querysets import MessageQuerySet, RunQuerySet
from runs.states import Status
from runs.transactions import write_transaction
from runs.writes import Append, Claimed, Ended, Ending

if TYPE_CHECKING:
    from runs.models import Message, Run


BaseRunManager = models.Manager.from_queryset(RunQuerySet)


class RunManager(BaseRunManager["Run"]):
    """The one door for `status`, `next_seq`, `attempt` and the lease."""

    def _transition(self, guard: Q, *, to: Status | None, **changes: Any) -> int:  # noqa: ANN401
        """The only UPDATE of runs: those that match `guard` and may legally move to `to`.

        `to=None` stays where it is, which only an active run may. Returns the number of rows hit.
        """
        allowed = states.ACTIVE if to is None else states.sources(to)
        if to is not None:
            changes["status"] = to
        if to in states.TERMINAL:
            changes |= {"finished_at": Now(), "claimed_by": "", "lease_expires_at": None}
        hit = int(self.filter(guard, status__in=allowed).update(**changes))
        if hit and to in states.TERMINAL:
            transaction.on_commit(partial(metrics.RUNS_ENDED.labels(to).inc, hit))
        return hit

    def _record(
        self,
        run: Run,
        new: Sequence[Event],
        *,
        to: Status | None,
        **changes: Any,  # noqa: ANN401
    ) -> list[StoredEvent]:
        """Move a row that is as `run` has it, with `new` at the end of its log; `run` follows.

        Returns what was stored: nothing, if the row has moved on.
        """
        guard = Q(pk=run.pk, attempt=run.attempt, next_seq=run.next_seq)
        hit = self._transition(guard, to=to, next_seq=F("next_seq") + len(new), **changes)
        if not hit:
            return []
        stored = self._messages().add(run.pk, run.next_seq, new)
        run.refresh_from_db()
        return stored

    # A worker's run -------------------------------------------------------------------------

    def claim(self, *, worker: str, lease: timedelta) -> Claimed | None:
        """Take the oldest claimable run; None when there is none, or somebody was faster."""
        try:
            with write_transaction():
                run = self.claimable().select_for_update(skip_locked=True).first()
                if run is None:
                    return None
                return self._claim(run, worker=worker, lease=lease)
        except IntegrityError:  # two claims in one conversation met: the backstop constraint
            return None

    def _claim(self, run: Run, *, worker: str, lease: timedelta) -> Claimed | None:
        started = events.run_started(attempt=run.attempt + 1, agent=run.agent)
        stored = self._record(
            run,
            [started],
            to=Status.RUNNING,
            attempt=F("attempt") + 1,
            tries=F("tries") + 1,
            claimed_by=worker,
            lease_expires_at=Now() + lease,
            started_at=Now(),
        )
        return Claimed(run, stored) if stored else None

    def append(self, batch: Sequence[Append], *, lease: timedelta) -> list[KodaError | None]:
        """Add events to the logs of several runs at once: the only way in for a worker.

        One answer for each entry: None means that it is stored, anything else says why the run
        did not take it. Entries for different runs do not affect one another.
        """
        refused: set[int] = set()
        rows: list[Message] = []
        in_lock_order = sorted(range(len(batch)), key=lambda place: batch[place].run_id)
        with write_transaction():
            for place in in_lock_order:
                entry = batch[place]
                if not self._guarded_append(entry, lease=lease):
                    refused.add(place)
                    continue
                stored = events.numbered(entry.seq, entry.events)
                rows += self._messages().rows(entry.run_id, stored)
            self._messages().bulk_create(rows)
        return [
            self._explain(entry) if place in refused else None for place, entry in enumerate(batch)
        ]

    def _guarded_append(self, entry: Append, *, lease: timedelta) -> int:
        guard = Q(pk=entry.run_id, attempt=entry.attempt, next_seq=entry.seq)
        if entry.consumed is not None:
            guard &= Q(input_count=entry.consumed)
        changes: dict[str, Any] = {
            "next_seq": F("next_seq") + len(entry.events),
            "lease_expires_at": Now() + lease,
        }
        if any(event.type == EventType.DELTA for event in entry.events):
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

    # Leases ---------------------------------------------------------------------------------

    def renew(self, held: Sequence[tuple[UUID, int]], *, lease: timedelta) -> int:
        """Renew the leases of (run, attempt) pairs. A locked row is being renewed: skipped."""
        mine = Q(pk__in=[])
        for run_id, attempt in held:
            mine |= Q(pk=run_id, attempt=attempt)
        with write_transaction():
            free = list(
                self.active()
                .filter(mine)
                .select_for_update(skip_locked=True)
                .values_list("pk", flat=True)
            )
            return self._transition(Q(pk__in=free) & mine, to=None, lease_expires_at=Now() + lease)

    def take_over(self, run_id: UUID, *, worker: str, lease: timedelta) -> Claimed | None:
        """Own a run whose lease has expired; None when it has not, or somebody was faster.

        A run that was let go on purpose (`claimed_by` empty) has its new attempt number already.
        """
        with write_transaction():
            run = self.expired().filter(pk=run_id).select_for_update(skip_locked=True).first()
            if run is None:
                return None
            released = run.claimed_by == ""
            retry = released and run.error is not None
            attempt = run.attempt if released else run.attempt + 1
            folded = events.fold(self._messages().log(run_id))
            inputs = list(run.inputs.values_list("text", flat=True))
            new = [
                *folded.interrupted_tools("interrupted"),
                events.run_restarted(
                    reason=RestartReason.RETRY if retry else RestartReason.RECOVERED,
                    attempt=attempt,
                    inputs=inputs,
                ),
            ]
            stored = self._record(
                run,
                new,
                to=None,
                attempt=attempt,
                tries=F("tries") + (0 if released and not retry else 1),
                claimed_by=worker,
                lease_expires_at=Now() + lease,
                error=None,
            )
            return Claimed(run, stored, from_the_dead=not released)

    def release(
        self,
        run_id: UUID,
        *,
        attempt: int,
        backoff: timedelta = timedelta(0),
        error: Data | None = None,
    ) -> bool:
        """Let a run go without ending it; the sweep takes it once `backoff` is over.

        With `error` it is a retry and counts as a try, without it a hand-back, which does not.
        """
        hit = self._transition(
            Q(pk=run_id, attempt=attempt),
            to=None,
            attempt=F("attempt") + 1,
            claimed_by="",
            lease_expires_at=Now() + backoff if backoff else Now(),
            error=error,
        )
        return bool(hit)

    # From outside ---------------------------------------------------------------------------

    def add_input(self, run_id: UUID, *, window: timedelta) -> int | None:
        """Let a correction join the run, if it may (see `runs.merging`).

        Returns the position of the input, which the caller stores in the same transaction; None
        when the run does not take it. The caller holds the conversation's lock and has found
        this run to be its newest.
        """
        hit = self.filter(
            pk=run_id, status__in=merging.JOINABLE, created_at__gt=Now() - window
        ).update(input_count=F("input_count") + 1)
        if not hit:
            return None
        return int(self.values_list("input_count", flat=True).get(pk=run_id)) - 1

    def end(
        self,
        run_id: UUID,
        *,
        to: Status,
        event: Event,
        error: Data | None = None,
        attempt: int | None = None,
    ) -> Ended:
        """End a run without writing its log in turn: cancel, or fail what cannot be finished.

        The row lock keeps its worker out meanwhile. Deltas that were not committed yet are
        dropped: nobody has seen them. With `attempt` only that one's run is ended. A finished run,
        or another attempt's, comes back as it is. Raises Run.DoesNotExist.
        """
        with write_transaction():
            run = self.select_for_update().get(pk=run_id)
            if run.is_terminal or attempt not in {None, run.attempt}:
                return Ended(run, [])
            return self._end(run, to=to, event=event, error=error)

    def _end(self, run: Run, *, to: Status, event: Event, error: Data | None) -> Ended:
        states.check_move(Status(run.status), to)
        folded = events.fold(self._messages().log(run.pk))
        new = [*folded.interrupted_tools("stopped"), event]
        stored = self._record(
            run,
            new,
            to=to,
            output=folded.text,
            error=error,
            finish_reason=event.data.get("reason", "error"),
        )
        return Ended(run, stored)

    def cancel(self, run_id: UUID, *, reason: str) -> Ended:
        return self.end(run_id, to=Status.CANCELLED, event=events.run_cancelled(reason=reason))

    def fail(self, run_id: UUID, *, code: str, message: str, attempt: int | None = None) -> Ended:
        return self.end(run_id, to=Status.FAILED, attempt=attempt, **_failure(code, message))

    def fail_expired(self, run_id: UUID, *, code: str, message: str) -> Ended | None:
        """Fail a run that has no worker; None when it has one, or is gone or over."""
        with write_transaction():
            run = self.expired().filter(pk=run_id).select_for_update(skip_locked=True).first()
            if run is None:
                return None
            return self._end(run, to=Status.FAILED, **_failure(code, message))

    @staticmethod
    def _messages() -> MessageQuerySet:
        model: type[Message] = apps.get_model("koda_runs", "Message")
        return model.objects.all()


class _Failure(TypedDict):
    event: Event
    error: Data


def _failure(code: str, message: str) -> _Failure:
    return {
        "event": events.run_failed(code=code, message=message),
        "error": {"code": code, "message": message},
    }
