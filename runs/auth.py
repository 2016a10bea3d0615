"""Who is asking: a signed-in user, or a visitor known by the browser session."""

from typing import Any

from django.http import HttpRequest
from django.utils.crypto import salted_hmac

from runs import conf, tokens
from runs.errors import Refused
from runs.querysets import Owner

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


class NotSignedIn(Exception):
    """Nobody is signed in, and visitors are not admitted; or the token is not valid."""


class ReadOnlyToken(Refused):
    """This token reads and nothing else."""

    code = "read_only_token"


def token_owner(request: HttpRequest) -> Owner | None:
    """Whom an `Authorization: Bearer` header stands for; None without one.

    A header that is there decides: a wrong one raises NotSignedIn and never falls through to
    the session. Raises ReadOnlyToken when a token that only reads would write.
    """
    scheme, _, key = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        return None
    token = tokens.find(key.strip())
    if token is None:
        raise NotSignedIn
    if not token.can_write and request.method not in SAFE_METHODS:
        raise ReadOnlyToken("This token may only read.")
    return Owner(user=token.user)


def owner_of(request: HttpRequest) -> Owner:
    """Whose conversations this request may touch: bearer, session, visitor, in this order.

    A visitor without a session yet owns nothing; `admit_visitor` begins one. Raises NotSignedIn
    and ReadOnlyToken.
    """
    if (by_token := token_owner(request)) is not None:
        return by_token
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
