"""Middleware that only looks at what goes out."""

from collections.abc import Callable
from typing import Any

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest, HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

Change = Callable[[HttpRequest, HttpResponseBase], HttpResponseBase]
GetResponse = Callable[[HttpRequest], Any]
Middleware = Callable[[GetResponse], GetResponse]


def response_middleware(change: Change) -> Middleware:
    """Middleware that gives out what `change` makes of each response.

    Synchronous and asynchronous: one that is synchronous only would cost every stream a thread.
    """

    @sync_and_async_middleware
    def middleware(get_response: GetResponse) -> GetResponse:
        if iscoroutinefunction(get_response):

            async def answer_async(request: HttpRequest) -> HttpResponseBase:
                return change(request, await get_response(request))

            return answer_async

        def answer(request: HttpRequest) -> HttpResponseBase:
            return change(request, get_response(request))

        return answer

    return middleware
