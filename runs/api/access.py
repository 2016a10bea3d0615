"""Who may call: an API token, else the session cookie; and what they find."""

from __future__ import annotations

from uuid import UUID

from django.conf import settings
from django.http import HttpRequest
from ninja.errors import AuthenticationError
from ninja.security import APIKeyCookie, HttpBearer

from runs import auth, errors
from runs.models import Conversation, Run
from runs.prepared import Prepared
from runs.querysets import Owner


class BearerToken(HttpBearer):
    """An API token. One that is sent and wrong is refused, whatever cookies come with it."""

    openapi_description = "From `manage.py create_token`, or from the admin."

    def __call__(self, request: HttpRequest) -> Owner | None:
        try:
            return auth.token_owner(request)
        except auth.NotSignedIn:
            raise AuthenticationError from None

    def authenticate(self, request: HttpRequest, token: str) -> Owner | None:
        return self(request)


class SessionOrVisitor(APIKeyCookie):
    """The session cookie of a signed-in user or of a visitor; both check CSRF."""

    param_name = settings.SESSION_COOKIE_NAME
    openapi_description = "With it calls that change something send `X-CSRFToken` as well."

    def authenticate(self, request: HttpRequest, key: str | None) -> Owner | None:
        try:
            return auth.admit_visitor(request)
        except auth.NotSignedIn:
            return None


def owner_of(request: HttpRequest) -> Owner:
    """Whom the request was authenticated as."""
    owner: Owner = request.auth  # type: ignore[attr-defined]
    return owner


def conversation_of(request: HttpRequest, conversation_id: UUID) -> Conversation:
    """Raises NotFound for a missing or foreign one."""
    found = _CONVERSATION.first(conversation_id)
    if found is None or not owner_of(request).owns(found.owner_id, found.visitor_key):
        raise errors.NotFound("There is no such object.")
    return found


_CONVERSATION = Prepared(lambda pk: Conversation.objects.filter(pk=pk), UUID)


def run_of(request: HttpRequest, run_id: UUID) -> Run:
    """Raises NotFound for a missing or foreign one."""
    found: Run | None = Run.objects.owned_by(owner_of(request)).filter(pk=run_id).first()
    if found is None:
        raise errors.NotFound("There is no such object.")
    return found
