"""Every refusal as a problem document."""

from __future__ import annotations

from collections.abc import Sequence

from django.core.exceptions import RequestDataTooBig
from django.http import Http404, HttpRequest, HttpResponse
from django.http.request import RawPostDataException
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, Throttled, ValidationError
from ninja.parser import Parser

from runs import auth, errors
from runs.problems import not_found, not_signed_in, problem, too_large

STATUS_OF = {
    auth.ReadOnlyToken: 403,
    errors.NotFound: 404,
    errors.ConversationBusy: 409,
    errors.NotRegenerable: 409,
    errors.KeyReused: 422,
    errors.InvalidText: 422,
    errors.InvalidMetadata: 422,
    errors.UnknownAgent: 422,
    errors.TooManyRuns: 429,
}
RETRY_RUNS = 5
"""Seconds after which a run may have ended: a guess, and cheap to be wrong about."""


class UnsupportedMediaType(Exception):
    """The body is announced as something other than JSON."""


class JsonParser(Parser):
    """Takes what says that it is JSON."""

    def parse_body(self, request: HttpRequest) -> dict[str, object]:
        if request.content_type != "application/json":
            raise UnsupportedMediaType
        return super().parse_body(request)


def register(api: NinjaAPI) -> None:
    """Make `api` answer with problem documents."""
    api.exception_handler(errors.Refused)(_refused)
    api.exception_handler(ValidationError)(_invalid)
    api.exception_handler(AuthenticationError)(lambda request, error: not_signed_in())
    api.exception_handler(RequestDataTooBig)(lambda request, error: too_large())
    # The CSRF check has read the body as a form: it was announced as one.
    api.exception_handler(RawPostDataException)(lambda request, error: _not_json())
    api.exception_handler(Http404)(lambda request, error: not_found())
    api.exception_handler(Throttled)(_throttled)
    api.exception_handler(HttpError)(_http_error)


def _refused(request: HttpRequest, error: errors.Refused) -> HttpResponse:
    more = {"errors": [{"field": error.field, "message": str(error)}]} if error.field else {}
    status = STATUS_OF.get(type(error), 409)
    answer = problem(status, code=error.code, detail=str(error), **more)
    if status == 429:
        answer.headers["Retry-After"] = str(RETRY_RUNS)
    return answer


def _invalid(request: HttpRequest, error: ValidationError) -> HttpResponse:
    faults = [{"field": _field(fault["loc"]), "message": fault["msg"]} for fault in error.errors]
    first = faults[0]
    detail = f"{first['field']}: {first['message']}" if first["field"] else first["message"]
    return problem(422, code="invalid", detail=detail, errors=faults)


def _field(location: Sequence[str | int]) -> str:
    """The dotted name of the value at fault: bodies have the argument's name in front."""
    skipped = 2 if location[0] == "body" else 1
    return ".".join(str(part) for part in location[skipped:])


def _throttled(request: HttpRequest, error: Throttled) -> HttpResponse:
    return problem(429, code="too_many_messages", detail="Too many messages within a minute.")


def _http_error(request: HttpRequest, error: HttpError) -> HttpResponse:
    if isinstance(error.__cause__, UnsupportedMediaType):
        return _not_json()
    codes = {400: "malformed", 403: "csrf_failed"}
    return problem(error.status_code, code=codes.get(error.status_code, "error"), detail=str(error))


def _not_json() -> HttpResponse:
    detail = "The body has to be application/json."
    return problem(415, code="unsupported_media_type", detail=detail)
