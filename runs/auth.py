"""Who is asking: a signed-in user, or a visitor known by the browser session."""

from typing import Any

from django.http import HttpRequest
from django.utils.crypto import salted_hmac

from runs import conf
from runs.querysets import Owner


class NotSignedIn(Exception):
    """Nobody is signed in, and visitors are not admitted."""


def owner_of(request: HttpRequest) -> Owner:
    """Whose conversations this request may touch. Raises NotSignedIn.

    A visitor without a session yet owns nothing; `admit_visitor` begins one.
    """
    user: Any = request.user
    if user.is_authenticated:
        return Owner(user=user)
    if not conf.get().allow_anonymous:
        raise NotSignedIn
    return Owner(visitor_key=_visitor_key(request))


def admit_visitor(request: HttpRequest) -> Owner:
    """Like `owner_of`, but a new visitor gets a session."""
    owner = owner_of(request)
    if owner.user is not None or owner.visitor_key:
        return owner
    request.session.create()
    return owner_of(request)


def _visitor_key(request: HttpRequest) -> str:
    """A function of the session's key: requests in parallel cannot disagree about it.

    Hashed, because whoever can read the table must not be able to take over the session.
    """
    session_key = request.session.session_key
    if session_key is None:
        return ""
    return salted_hmac("koda.visitor", session_key, algorithm="sha256").hexdigest()
