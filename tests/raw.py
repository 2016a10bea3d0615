"""Connections to a stream that do not read, and that can vanish without a goodbye."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Self

from tests.live_client import Visitor

OPENED_AT_ONCE = 50


class Raw:
    """One connection. Nothing reads it beyond the first bytes and what fits into `buffer`."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    @classmethod
    async def open(cls, visitor: Visitor, run_id: str, *, buffer: int) -> Self:
        """Return once the stream is open: its first bytes are here."""
        url = visitor.http.base_url
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, (url.host, url.port))
        reader, writer = await asyncio.open_connection(sock=sock, limit=buffer)
        cookies = "; ".join(f"{name}={value}" for name, value in visitor.http.cookies.items())
        writer.write(
            f"GET /api/runs/{run_id}/stream HTTP/1.1\r\nHost: {url.host}\r\n"
            f"Cookie: {cookies}\r\n\r\n".encode()
        )
        await reader.readuntil(b": koda\n\n")
        return cls(writer)

    def reset(self) -> None:
        """Vanish: the other side gets an RST. Once is enough."""
        if self._writer.transport.is_closing():
            return
        sock = self._writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()


@asynccontextmanager
async def raw_streams(
    visitor: Visitor, runs: Sequence[str], count: int, *, buffer: int = 65_536
) -> AsyncIterator[list[Raw]]:
    """Streams of these runs in turn, opened some at a time; at the end they vanish."""
    opened: list[Raw] = []
    try:
        for first in range(0, count, OPENED_AT_ONCE):
            numbers = range(first, min(first + OPENED_AT_ONCE, count))
            opening = (Raw.open(visitor, runs[n % len(runs)], buffer=buffer) for n in numbers)
            opened += await asyncio.gather(*opening)
        yield opened
    finally:
        for stream in opened:
            stream.reset()
