"""The ASGI application, under any server: `uvicorn koda.asgi:application`, `daphne …`.

Django gives every ASGI request a thread of its own and keeps it, with its database connection,
until the response has ended; for a stream that is never. Streams share one thread instead: it
authenticates them one after the other and does nothing slow.
"""

import os
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from asgiref.sync import ThreadSensitiveContext
from django.contrib.staticfiles.handlers import ASGIStaticFilesHandler
from django.core.asgi import get_asgi_application

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


application = SharedStreamThread(ASGIStaticFilesHandler(get_asgi_application()))
