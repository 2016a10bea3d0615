"""/metrics: what this process has counted, and what is open in the database."""

from __future__ import annotations

import logging
import math

from asgiref.sync import sync_to_async
from django.db import DatabaseError, transaction
from django.db.models import Count, Max, Min
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from runs import states
from runs.models import Run
from runs.states import Status
from streaming.metrics import OLDEST_PENDING, RUNS

logger = logging.getLogger(__name__)


async def metrics(request: HttpRequest) -> HttpResponse:
    """In Prometheus' text format. What the database would say is NaN while it is away."""
    try:
        numbers, oldest = await sync_to_async(_open_runs)()
    except DatabaseError as error:
        logger.warning("open runs not counted: %s", error)
        numbers, oldest = dict.fromkeys(states.OPEN, math.nan), math.nan
    for status in states.OPEN:
        RUNS.labels(status.value).set(numbers.get(status.value, 0))
    OLDEST_PENDING.set(oldest)
    return HttpResponse(generate_latest(), content_type=CONTENT_TYPE_LATEST)


metrics = transaction.non_atomic_requests(metrics)


def _open_runs() -> tuple[dict[str, float], float]:
    """By the partial indexes of pending and of active runs, however many have ended."""
    active = Run.objects.active().values_list("status").annotate(number=Count("pk"))
    pending = Run.objects.filter(status=Status.PENDING).aggregate(
        number=Count("pk"), oldest=Min("created_at"), now=Max(Now())
    )
    age = (pending["now"] - pending["oldest"]).total_seconds() if pending["oldest"] else 0.0
    return {**dict(active), Status.PENDING.value: pending["number"]}, max(0.0, age)
