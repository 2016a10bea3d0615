"""The ASGI application, under any server: `uvicorn koda.asgi:application`, `daphne …`.

Django gives every ASGI request a thread of its own and keeps it, with its database connection,
until the response has ended; for a stream that is never. Streams share one thread instead: it
authenticates them one after the other and does nothing slow.

Whatever is asked runs through middleware and view in one go on its thread. Django's own way is to
cross to the thread and back for each of them, which costs more than posting a message.

Django reads a whole body to the disk before it looks at its size, and only where the size is
announced. So bodies are bounded here.
"""

import os
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import django
from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.conf import settings
from django.contrib.staticfiles.handlers import ASGIStaticFilesHandler
from django.core.handlers.asgi import ASGIHandler
from django.http import HttpRequest, HttpResponse, HttpResponseBase

from runs.problems import too_large

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "koda.settings")

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


class SharedStreamThread:
    """Serves stream paths in the context of one shared thread, everything else as ever."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="koda-streams")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not scope.get("path", "").endswith("/stream"):
            await self._application(scope, receive, send)
            return
        async with ThreadSensitiveContext(executor=self._thread):
            await self._application(scope, receive, send)


class InOneGo(ASGIHandler):
    """Django's handler, with its synchronous middleware chain."""

    def __init__(self) -> None:
        self.load_middleware(is_async=False)
        self._on_its_thread = sync_to_async(self.get_response)

    async def get_response_async(self, request: HttpRequest) -> HttpResponseBase:
        return await self._on_its_thread(request)


class TooLarge(Exception):
    """The body goes on beyond the limit."""


class BoundedBody:
    """Ends requests whose body is larger than DATA_UPLOAD_MAX_MEMORY_SIZE, announced or not."""

    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        left = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        if _announced(scope) > left:
            await _answer(send, too_large())
            return

        async def bounded() -> Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:
                raise TooLarge
            return message

        try:
            await self._application(scope, bounded, send)
        except TooLarge:
            await _answer(send, too_large())


def _announced(scope: Scope) -> int:
    """The Content-Length; 0 without a readable one, which is for others to complain about."""
    length = dict(scope["headers"]).get(b"content-length", b"")
    return int(length) if length.isdigit() else 0


async def _answer(send: Send, response: HttpResponse) -> None:
    headers = [(name.lower().encode(), value.encode()) for name, value in response.items()]
    headers.append((b"content-length", str(len(response.content)).encode()))
    await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
    await send({"type": "http.response.body", "body": response.content})


django.setup(set_prefix=False)
application = BoundedBody(SharedStreamThread(ASGIStaticFilesHandler(InOneGo())))
