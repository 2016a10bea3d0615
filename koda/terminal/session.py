"""One question, followed to the end of its answer however often the connection drops."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from koda.terminal.frames import Frames, Received
from koda.terminal.printer import Printer

RECONNECT_DELAY = 1.0
"""Seconds between two tries to connect."""

PATIENCE = 300.0
"""Seconds without hearing from the server, after which there is no point in trying further."""

FAILED = 1
CANCELLED = 3
"""Somebody else stopped the run."""

INTERRUPTED = 130
"""Ctrl-C, as shells tell it."""

EXIT_CODES = {"run_completed": 0, "run_failed": FAILED, "run_cancelled": CANCELLED}


class Unreachable(Exception):
    """The connection is gone, or there never was one; trying again may help."""


class NotServed(Exception):
    """The other side says no; the message is its reason."""


class Place(Protocol):
    """Where the run is: in this process's database, or behind a URL."""

    async def ask(self, text: str, agent: str | None) -> None:
        """Begin a run in a new conversation. Raises Unreachable and NotServed."""

    def follow(self, last_id: int | None) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """The run's stream after this id. Raises Unreachable and NotServed, reading too."""

    async def cancel(self) -> None:
        """Stop the run. Raises Unreachable and NotServed."""


class Session:
    """Asks, follows, and stops the run at the first Ctrl-C; the second one only leaves."""

    def __init__(self, place: Place, printer: Printer) -> None:
        self._place = place
        self._printer = printer
        self._asked = False
        self._interrupted = False
        self._last_id: int | None = None
        self._heard_at = 0.0
        self._work: asyncio.Task[Received] | None = None
        self._stopping: asyncio.Task[None] | None = None

    async def run(self, text: str, agent: str | None) -> int:
        """The exit code."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._interrupt)
        self._work = asyncio.create_task(self._ask(text, agent), name="chat")
        try:
            await asyncio.wait({self._work})
            if self._work.cancelled():
                return INTERRUPTED
            end = self._work.result()
        except (NotServed, Unreachable) as error:
            self._printer.note(str(error))
            return FAILED
        finally:
            self._work.cancel()
            if self._stopping is not None:
                self._stopping.cancel()
            loop.remove_signal_handler(signal.SIGINT)
        if self._interrupted and end.type == "run_cancelled":
            return INTERRUPTED
        return EXIT_CODES.get(end.type, FAILED)

    def _interrupt(self) -> None:
        if self._interrupted:
            self._leave()
            return
        self._interrupted = True
        self._printer.note("stopping; Ctrl-C once more leaves at once")
        if self._asked:
            self._stopping = asyncio.create_task(self._stop(), name="chat-stop")

    def _leave(self) -> None:
        if self._work is not None:
            self._work.cancel()

    async def _ask(self, text: str, agent: str | None) -> Received:
        await self._place.ask(text, agent)
        self._asked = True
        if self._interrupted:
            self._stopping = asyncio.create_task(self._stop(), name="chat-stop")
        return await self._follow()

    async def _stop(self) -> None:
        while True:
            try:
                await self._place.cancel()
            except Unreachable:
                await asyncio.sleep(RECONNECT_DELAY)
            except NotServed as refusal:
                self._printer.note(f"not stopped: {refusal}")
                return
            else:
                return

    async def _follow(self) -> Received:
        """Show everything up to the terminal event."""
        self._heard()
        while True:
            try:
                async with self._place.follow(self._last_id) as chunks:
                    end = await self._read(chunks)
                if end is not None:
                    return end
            except Unreachable:
                if self._silence > PATIENCE:
                    raise
            await asyncio.sleep(RECONNECT_DELAY)

    async def _read(self, chunks: AsyncIterator[bytes]) -> Received | None:
        """One connection. None when it ended before the run did."""
        frames = Frames()
        async for chunk in chunks:
            self._heard()
            for received in frames.feed(chunk):
                if received.id is None:
                    return self._told(received)
                self._last_id = received.id
                self._printer.show(received)
                if received.terminal:
                    return received
        return None

    def _heard(self) -> None:
        self._heard_at = asyncio.get_running_loop().time()

    @property
    def _silence(self) -> float:
        return asyncio.get_running_loop().time() - self._heard_at

    def _told(self, error: Received) -> Received | None:
        """The server has ended the connection: come back, unless the run is gone."""
        if error.data["code"] != "gone":
            return None
        self._printer.note(error.data["message"])
        return error
