"""The one door: every UPDATE that moves a run is built here.

Compare-and-set is the transition: each write is a conditional UPDATE whose WHERE names what the
writer believes, and the row count is the answer. The from-statuses come from the table in
`runs.states`; nothing else writes `status`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.db import models, transaction
from django.db.models import F, Q
from django.db.models.functions import Now

from runs import metrics, states
from runs.events import Event, StoredEvent
from runs.querysets import MessageQuerySet, RunQuerySet
from runs.states import Status

if TYPE_CHECKING:
    from runs.models import Message, Run


BaseRunManager = models.Manager.from_queryset(RunQuerySet)


class Door(BaseRunManager["Run"]):
    """What the guarded writes are made of."""

    def _transition(self, guard: Q, *, to: Status | None, **changes: Any) -> int:  # noqa: ANN401
        """The only UPDATE of runs: those that match `guard` and may legally move to `to`.

        `to=None` stays where it is, which only an active run may. Returns the number of rows hit.
        """
        if to is not None:
            changes["status"] = to
        if to in states.TERMINAL:
            changes |= {"finished_at": Now(), "claimed_by": "", "lease_expires_at": None}
        hit = int(self.filter(guard, status__in=self._from(to)).update(**changes))
        if hit and to in states.TERMINAL:
            self._count_ended(to, hit)
        return hit

    @staticmethod
    def _count_ended(to: Status, runs: int = 1) -> None:
        """For the metrics, once it is true."""
        transaction.on_commit(partial(metrics.RUNS_ENDED.labels(to).inc, runs))

    @staticmethod
    def _from(to: Status | None) -> Collection[Status]:
        """From where a run may get there; the one reading of the table."""
        return states.ACTIVE if to is None else states.sources(to)

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
        run.refresh_from_db(fields=_own_columns(run))  # its conversation is as it was
        return stored

    @staticmethod
    def _messages() -> MessageQuerySet:
        model: type[Message] = apps.get_model("koda_runs", "Message")
        return model.objects.all()


def _own_columns(run: Run) -> list[str]:
    return [field.name for field in run._meta.concrete_fields if not field.is_relation]
