"""Errors on the wire: application/problem+json (RFC 9457), with a `code` for programs."""

from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponseBase, JsonResponse

from runs.responses import response_middleware

CONTENT_TYPE = "application/problem+json"


def problem(status: int, *, code: str, detail: str, **more: Any) -> JsonResponse:  # noqa: ANN401
    """A problem document. `more` are further members, such as `errors`."""
    body = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": code,
        **more,
    }
    return JsonResponse(body, status=status, content_type=CONTENT_TYPE)


def not_found() -> JsonResponse:
    """Missing and foreign objects answer the same."""
    return problem(404, code="not_found", detail="There is no such object.")


def not_signed_in() -> JsonResponse:
    answer = problem(401, code="not_signed_in", detail="Sign in first, or send a valid token.")
    answer.headers["WWW-Authenticate"] = "Bearer"
    return answer


def too_large() -> JsonResponse:
    return problem(413, code="too_large", detail="The body is too large.")


CODES = {
    400: "malformed",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    413: "too_large",
    500: "internal",
}
DETAILS = {
    400: "The request cannot be understood.",
    403: "This is not allowed.",
    404: "There is no such object.",
    405: "This method is not allowed here.",
    500: "Something went wrong on our side.",
}


def _as_problem(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """Django's own errors under /api/, told like ours."""
    status = response.status_code
    ours = response.headers.get("Content-Type", "") == CONTENT_TYPE
    if status < 400 or ours or not request.path_info.startswith("/api/"):
        return response
    told = problem(status, code=CODES.get(status, "error"), detail=DETAILS.get(status, ""))
    if "Allow" in response.headers:
        told.headers["Allow"] = response.headers["Allow"]
    return told


problems = response_middleware(_as_problem)
"""Middleware: every error of the API is a problem document, whoever made it."""
