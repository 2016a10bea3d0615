"""The chat page."""

from contextlib import suppress
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.csrf import ensure_csrf_cookie
from django.views.decorators.http import require_safe

from koda.texts import TEXTS
from runs import auth, conf

EXAMPLES = (
    _("Where is my order 2077?"),
    _("I would like to exchange order 1042."),
    _("Can I still change the delivery address?"),
)
"""Questions that the demo agent knows an answer to."""

MODULES = (
    *("api", "blocks", "composer", "dom", "drawer", "editor", "follow", "inline", "log"),
    *("markdown", "parts", "reducer", "scroll", "sidebar", "story", "stream", "texts", "thread"),
    *("turn", "wakefulness"),
)
"""What `chat.mjs` imports, so that the browser fetches all at once and not one after the other."""


@require_safe
@ensure_csrf_cookie
def chat(request: HttpRequest, conversation_id: UUID | None = None) -> HttpResponse:
    """The page itself; everything on it comes through the API."""
    with suppress(auth.NotSignedIn):
        auth.admit_visitor(request)  # now, so that the page's first requests share a session
    context = {
        "examples": EXAMPLES if conf.get().default_agent == "demo" else (),
        "modules": [f"koda/{name}.mjs" for name in MODULES],
        "texts": TEXTS,
    }
    return render(request, "koda/chat.html", context)
