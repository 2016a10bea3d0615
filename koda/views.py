"""The chat page."""

from contextlib import suppress
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.csrf import ensure_csrf_cookie
from django.views.decorators.http import require_safe

from runs import auth, conf


@require_safe
@ensure_csrf_cookie
def chat(request: HttpRequest, conversation_id: UUID | None = None) -> HttpResponse:
    """The page itself; everything on it comes through the API."""
    with suppress(auth.NotSignedIn):
        auth.admit_visitor(request)  # now, so that the page's first requests share a session
    context = {
        "conversation_id": "" if conversation_id is None else str(conversation_id),
        "merge_window_ms": round(conf.get().merge_window * 1000),
    }
    return render(request, "koda/chat.html", context)
