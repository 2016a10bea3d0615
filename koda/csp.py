"""What our pages may load and run: files of this site, and nothing that stands in the page itself.

The last line of defence where a model's or a person's text is shown. Django has this from 6.0 on;
the settings here run on 5.2 as well.
"""

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase

from runs.responses import response_middleware

HEADER = "Content-Security-Policy"
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",  # the admin's and the API docs' icons
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)


def _with_policy(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    debug_page = settings.DEBUG and response.status_code >= 400  # its styles stand in the page
    if not debug_page:
        response.headers.setdefault(HEADER, POLICY)
    return response


content_security_policy = response_middleware(_with_policy)
"""Middleware: every response says what it may load and run."""
