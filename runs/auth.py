"""Who is asking: a signed-in user, or a visitor known by the browser session."""

import secrets
from typing import Any

from django.http import HttpRequest

from runs import conf
from runs.querysets import Owner

VISITOR = "koda_visitor"
"""The session key that holds a visitor's own random key."""


class NotSignedIn(Exception):
    """Nobody is signed in, and visitors are not admitted."""


def owner_of(request: HttpRequest) -> Owner:
    """Whose conversations this request may touch. Raises NotSignedIn.

    A visitor without a key yet owns nothing; `admit_visitor` gives one.
    """
    user: Any = request.user
    if user.is_authenticated:
        return Owner(user=user)
    if not conf.get().allow_anonymous:
        raise NotSignedIn
    return Owner(visitor_key=request.session.get(VISITOR, ""))


def admit_visitor(request: HttpRequest) -> Owner:
    """Like `owner_of`, but a new visitor gets a key, kept in the session."""
    owner = owner_of(request)
    if owner.user is not None or owner.visitor_key:
        return owner
    request.session[VISITOR] = secrets.token_urlsafe(32)
    return Owner(visitor_key=request.session[VISITOR])
