"""What our pages may load and run: files of this site, and nothing that stands in the page itself.

The last line of defence where a model's or a person's text is shown. Django has this from 6.0 on;
the settings here run on 5.2 as well.
"""

from collections.abc import Callable
from typing import Any

from asgiref.sync import iscoroutinefunction
from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

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

GetResponse = Callable[[HttpRequest], Any]


@sync_and_async_middleware
def content_security_policy(get_response: GetResponse) -> GetResponse:
    """Middleware. Asynchronous too: a synchronous one would cost every stream a thread."""
    if iscoroutinefunction(get_response):

        async def answer_async(request: HttpRequest) -> HttpResponseBase:
            return _with_policy(await get_response(request))

        return answer_async

    def answer(request: HttpRequest) -> HttpResponseBase:
        return _with_policy(get_response(request))

    return answer


def _with_policy(response: HttpResponseBase) -> HttpResponseBase:
    debug_page = settings.DEBUG and response.status_code >= 400  # its styles stand in the page
    if not debug_page:
        response.headers.setdefault(HEADER, POLICY)
    return response
