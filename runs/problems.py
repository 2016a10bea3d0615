"""Errors on the wire: application/problem+json (RFC 9457), with a `code` for programs."""

from http import HTTPStatus
from typing import Any

from django.http import JsonResponse


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
    return JsonResponse(body, status=status, content_type="application/problem+json")


def not_found() -> JsonResponse:
    """Missing and foreign objects answer the same."""
    return problem(404, code="not_found", detail="There is no such object.")


def not_signed_in() -> JsonResponse:
    return problem(401, code="not_signed_in", detail="Sign in first.")
