"""The stream over HTTP."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from asgiref.sync import sync_to_async
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET

from runs import auth
from runs.models import Run
from runs.problems import not_found, not_signed_in, problem
from streaming import wire
from streaming.protocols import PROTOCOLS
from streaming.runtime import gateway

HEADERS = {
    "Cache-Control": "no-cache, no-transform",
    "X-Accel-Buffering": "no",
    "Content-Encoding": "identity",  # what compressing middleware takes for "done already"
}


@dataclass(frozen=True, slots=True)
class Found:
    """What the database says before a stream opens."""

    next_seq: int
    terminal: bool
    archived: bool


def _find(request: HttpRequest, run_id: UUID) -> Found | None:
    """The run, if this request may see it. Raises NotSignedIn."""
    owner = auth.owner_of(request)
    run = (
        Run.objects.owned_by(owner)
        .filter(pk=run_id)
        .only("next_seq", "status", "archived_at")
        .first()
    )
    if run is None:
        return None
    return Found(run.next_seq, run.is_terminal, archived=run.archived_at is not None)


@csrf_exempt  # it only reads: what posts here has the wrong method, whatever else it lacks
@require_GET
async def stream(request: HttpRequest, run_id: UUID) -> HttpResponseBase:
    """A run's events as they happen, from the client's last id on."""
    encode = PROTOCOLS.get(request.GET.get("protocol", "koda"))
    if encode is None:
        known = ", ".join(PROTOCOLS)
        return problem(422, code="unknown_protocol", detail=f"protocol: one of {known}.")
    try:
        found = await sync_to_async(_find)(request, run_id)
    except auth.NotSignedIn:
        return not_signed_in()
    if found is None:
        return not_found()
    given = request.headers.get("Last-Event-ID") or request.GET.get("last_event_id")
    start = wire.resume_from(wire.last_event_id(given))
    if start > found.next_seq:
        return problem(400, code="cursor_ahead", detail=f"The log ends before event {start - 1}.")
    if found.terminal and start == found.next_seq:
        return HttpResponse(status=204)
    reach = 0 if found.archived else found.next_seq  # an archived log is as short as it gets
    body = gateway().stream(run_id, start=start, reach=reach, encode=encode)
    return StreamingHttpResponse(
        body, content_type="text/event-stream; charset=utf-8", headers=HEADERS
    )


stream = transaction.non_atomic_requests(stream)
