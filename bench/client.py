"""The load client: raw sockets that note when bytes came; everything else is left for later.

It is the same for all systems and its CPU is nobody's. It stamps what arrives and looks at it when
the measurement is over (`bench.check`), so that it slows no system down more than it must.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import time
from typing import Any

HOST = "127.0.0.1"
IDLE = 2.0
"""Seconds after which a connection is opened anew: servers close idle ones after five or so."""

LAST = b"!"
"""Stands in a run's last fragment only."""


class Watch(asyncio.Protocol):
    """One open stream. `arrivals` are pairs of the monotonic clock's seconds and bytes."""

    def __init__(self, request: bytes, *, closes: bool) -> None:
        self.arrivals: list[tuple[float, bytes]] = []
        self.cut = False
        """It was still open when the client closed it."""
        self.first_byte: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._request = request
        self._closes = closes
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: Any) -> None:  # noqa: ANN401
        self._transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        now = time.monotonic()
        self.arrivals.append((now, data))
        if not self.first_byte.done():
            self.first_byte.set_result(now)
        if LAST in data and not self._closes:
            self._finish()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.first_byte.done():
            self.first_byte.set_exception(exc or ConnectionError("closed without an answer"))
            self.first_byte.exception()
        self._finish()

    def _finish(self) -> None:
        if not self.done.done():
            self.done.set_result(None)

    def close(self) -> None:
        if not self.done.done():
            self.cut = True
        if self._transport is not None:
            self._transport.abort()


def get(path: str, headers: dict[str, str]) -> bytes:
    """The bytes of a request for a stream."""
    lines = [f"GET {path} HTTP/1.1", f"Host: {HOST}", "Accept: text/event-stream"]
    lines += ["Connection: close", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


class Api:
    """JSON calls over one connection that stays open."""

    def __init__(self, port: int, headers: dict[str, str] | None = None) -> None:
        self.port = port
        self._headers = headers or {}
        self._lock = asyncio.Lock()
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._used = 0.0

    async def call(self, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401
        """The answer's JSON, or None for an empty one. Raises for anything but 2xx."""
        content = b"" if body is None else json.dumps(body).encode()
        head = [f"{method} {path} HTTP/1.1", f"Host: {HOST}", "Content-Type: application/json"]
        head += [f"Content-Length: {len(content)}"]
        head += [f"{name}: {value}" for name, value in self._headers.items()]
        async with self._lock:
            if time.monotonic() - self._used > IDLE:
                self.close()
            if self._streams is None:
                self._streams = await asyncio.open_connection(HOST, self.port)
            reader, writer = self._streams
            writer.write(("\r\n".join(head) + "\r\n\r\n").encode() + content)
            answer = await self._answer(reader, f"{method} {path}")
            self._used = time.monotonic()
            return answer

    async def _answer(self, reader: asyncio.StreamReader, asked: str) -> Any:  # noqa: ANN401
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        status, *lines = head.split("\r\n")
        headers = {name.lower(): value for name, _, value in (x.partition(": ") for x in lines)}
        content = b""
        if headers.get("transfer-encoding") == "chunked":
            while size := int(await reader.readline(), 16):
                content += (await reader.readexactly(size + 2))[:-2]
            await reader.readline()
        elif length := int(headers.get("content-length", "0")):
            content = await reader.readexactly(length)
        if not status.startswith("HTTP/1.1 2"):
            raise ConnectionError(f"{asked}: {status} {content[:300]!r}")
        return json.loads(content) if content else None

    def answers(self) -> bool:
        """Whether somebody listens there."""
        with contextlib.suppress(OSError), socket.create_connection((HOST, self.port), timeout=1):
            return True
        return False

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def watch(port: int, request: bytes, *, closes: bool) -> Watch:
    """Open a stream. The answer is awaited by its `first_byte`."""
    loop = asyncio.get_running_loop()
    _, opened = await loop.create_connection(lambda: Watch(request, closes=closes), HOST, port)
    return opened
