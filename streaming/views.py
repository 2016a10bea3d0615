"""The stream over HTTP."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from uuid import UUID

from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET

from runs import auth, states
from runs.models import Run
from runs.prepared import Prepared
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
    row = _RUN.first(run_id)
    if row is None:
        return None
    next_seq, status, archived_at, owner_id, visitor_key = row
    if not owner.owns(owner_id, visitor_key):
        return None
    return Found(next_seq, status in states.TERMINAL, archived=archived_at is not None)


_RUN = Prepared(
    lambda run_id: Run.objects.filter(pk=run_id).values_list(
        "next_seq",
        "status",
        "archived_at",
        "conversation__owner_id",
        "conversation__visitor_key",
    ),
    UUID,
)


class Body:
    """Begins when the first piece is asked for: on the event loop, where the gateway is."""

    def __init__(self, begin: Callable[[], AsyncGenerator[bytes, None]]) -> None:
        self._begin = begin
        self._pieces: AsyncGenerator[bytes, None] | None = None

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    def __anext__(self) -> Awaitable[bytes]:
        if self._pieces is None:
            self._pieces = self._begin()
        return self._pieces.__anext__()

    async def aclose(self) -> None:
        if self._pieces is not None:
            await self._pieces.aclose()


class EventStream(StreamingHttpResponse):
    """Gives the server its pieces as they are: Django's way has two more generators for each."""

    def __init__(self, body: Body) -> None:
        super().__init__(body, content_type="text/event-stream; charset=utf-8", headers=HEADERS)
        self._body = body

    def __aiter__(self) -> AsyncIterator[bytes]:
        as_given = self._iterator is self._body  # type: ignore[attr-defined]
        return self._body if as_given else super().__aiter__()  # some middleware changes pieces


@csrf_exempt  # it only reads: what posts here has the wrong method, whatever else it lacks
@require_GET
@transaction.non_atomic_requests
def stream(request: HttpRequest, run_id: UUID) -> HttpResponseBase:
    """A run's events as they happen, from the client's last id on.

    Only what comes before the first byte is synchronous, and runs on its thread in one go. An
    asynchronous view would be one more way there and back for every client of a storm.
    """
    encode = PROTOCOLS.get(request.GET.get("protocol", "koda"))
    if encode is None:
        known = ", ".join(PROTOCOLS)
        return problem(422, code="unknown_protocol", detail=f"protocol: one of {known}.")
    try:
        found = _find(request, run_id)
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
    return EventStream(
        Body(lambda: gateway().stream(run_id, start=start, reach=reach, encode=encode))
    )
