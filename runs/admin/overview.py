"""How it goes: what is open, what ended lately, who waits, who works. Few and cheap questions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import BooleanField, Count, Exists, ExpressionWrapper, Min, OuterRef, Q
from django.db.models.functions import Now

from runs import conf, states
from runs.admin.filters import IS_OPEN, younger_than
from runs.models import Run, WorkerProcess
from runs.states import Status

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
OLDEST = 10
WORKERS = 200


@dataclass(frozen=True, slots=True)
class OpenCount:
    status: str
    number: int
    oldest: datetime | None


@dataclass(frozen=True, slots=True)
class EndCount:
    """Of the runs created in the last hour and the last day, those that ended this way."""

    status: str
    hour: int
    day: int


@dataclass(frozen=True, slots=True)
class Worker:
    """As it last reported itself."""

    name: str
    concurrency: int
    running: int
    started_at: datetime
    seen_at: datetime
    silent: bool
    """For longer than a lease: its runs are being taken over."""


@dataclass(frozen=True, slots=True)
class Overview:
    open: list[OpenCount]
    ended: list[EndCount]
    expired: int
    """Runs whose worker is gone and that nobody has taken over yet."""
    oldest: list[Run]
    workers: list[Worker]

    @property
    def heard(self) -> list[Worker]:
        """The workers that are not silent."""
        return [worker for worker in self.workers if not worker.silent]

    @property
    def slots(self) -> int:
        return sum(worker.concurrency for worker in self.heard)

    @property
    def running(self) -> int:
        return sum(worker.running for worker in self.heard)


def overview() -> Overview:
    return Overview(
        open=_open(),
        ended=_ended(),
        expired=Run.objects.expired().count(),
        oldest=_oldest_pending(),
        workers=_workers(),
    )


def _open() -> list[OpenCount]:
    """By the partial indexes: a table of finished runs costs nothing here."""
    rows = Run.objects.filter(IS_OPEN).order_by().values("status")
    found: dict[str, Any] = {
        row["status"]: row for row in rows.annotate(number=Count("pk"), oldest=Min("created_at"))
    }
    none = {"number": 0, "oldest": None}
    return [
        OpenCount(str(status), row["number"], row["oldest"])
        for status in Status
        if status in states.OPEN
        for row in [found.get(status, none)]
    ]


def _ended() -> list[EndCount]:
    rows = younger_than(Run.objects.filter(status__in=states.TERMINAL), DAY)
    found: dict[str, Any] = {
        row["status"]: row
        for row in rows.order_by()
        .values("status")
        .annotate(day=Count("pk"), hour=Count("pk", filter=Q(created_at__gte=Now() - HOUR)))
    }
    none = {"hour": 0, "day": 0}
    return [
        EndCount(str(status), row["hour"], row["day"])
        for status in Status
        if status in states.TERMINAL
        for row in [found.get(status, none)]
    ]


def _oldest_pending() -> list[Run]:
    """`behind` tells whether it is an earlier run of the conversation that it waits for."""
    earlier = Run.objects.filter(
        IS_OPEN, conversation=OuterRef("conversation"), turn__lt=OuterRef("turn")
    )
    rows = Run.objects.filter(status=Status.PENDING).order_by("created_at", "id")
    return list(
        rows.annotate(behind=Exists(earlier)).only(
            "id", "conversation_id", "turn", "agent", "created_at", "status"
        )[:OLDEST]
    )


def _workers() -> list[Worker]:
    silent = Q(seen_at__lt=Now() - conf.get().lease_delta)
    rows = WorkerProcess.objects.annotate(
        silent=ExpressionWrapper(silent, output_field=BooleanField())
    ).order_by("name")
    names = ("name", "concurrency", "running", "started_at", "seen_at", "silent")
    return [Worker(**row) for row in rows.values(*names)[:WORKERS]]
