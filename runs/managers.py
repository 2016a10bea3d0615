"""The guarded writes. Everything that changes a run's status or log is one of these methods."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, TypedDict
from uuid import UUID

from django.db import IntegrityError, connection
from django.db.models import F, Q
from django.db.models.functions import Now

from runs import events, merging, sql, states
from runs.appending import Appending
from runs.events import Data, Event, RestartReason
from runs.states import Status
from runs.transactions import write_transaction
from runs.writes import Claimed, Ended

if TYPE_CHECKING:
    from runs.models import Run


class RunManager(Appending):
    """The one door for `status`, `next_seq`, `attempt` and the lease."""

    # A worker's run -------------------------------------------------------------------------

    def claim(self, *, worker: str, lease: timedelta) -> Claimed | None:
        """Take the oldest claimable run; None when there is none, or somebody was faster."""
        try:
            if connection.vendor == "postgresql":
                return self._claim_at_once(worker=worker, lease=lease)
            with write_transaction():
                run = self.claimable().select_related("conversation__owner").first()
                if run is None:
                    return None
                return self._claim(run, worker=worker, lease=lease)
        except IntegrityError:  # two claims in one conversation met: the backstop constraint
            return None

    def _claim_at_once(self, *, worker: str, lease: timedelta) -> Claimed | None:
        """`_transition` and `run_started` in one statement."""
        may_run = self._from(Status.RUNNING)
        run = sql.claim(self.model, worker=worker, lease=lease, may_run=may_run)
        if run is None:
            return None
        started = events.run_started(attempt=run.attempt, agent=run.agent)
        return Claimed(run, events.numbered(run.next_seq - 1, [started]))

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


class _Failure(TypedDict):
    event: Event
    error: Data


def _failure(code: str, message: str) -> _Failure:
    return {
        "event": events.run_failed(code=code, message=message),
        "error": {"code": code, "message": message},
    }
