"""Threads of their own for agents that may block.

An agent that calls a synchronous library inside its coroutine stops the event loop it runs on.
So that this hurts nobody else, each call of an agent runs on a loop and thread of its own, unless
the agent promises (`cooperative = True`) that it never blocks and saves the two hand-overs.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import cast

import uvloop

from runs.agents.base import Agent, Turn

HIGH = 256
"""Items that may wait to cross; then the agent waits."""

LOW = 64
"""From here on it goes on."""

STOP_PATIENCE = 1.0
"""Seconds for an idle lane to end; its thread does not keep the process alive."""

_numbers = itertools.count(1)


class Lane:
    """A thread with an event loop."""

    def __init__(self) -> None:
        self.loop = uvloop.new_event_loop()
        name = f"koda-agent-{next(_numbers)}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        finally:
            self.loop.close()

    def stop(self) -> None:
        """End the thread once nothing runs on it."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(STOP_PATIENCE)


class Lanes:
    """Lanes to be used again and again: an agent keeps its client for each event loop."""

    def __init__(self) -> None:
        self._idle: list[Lane] = []

    def open(self, respond: Agent, turn: Turn) -> Crossing:
        """Call the agent on a lane; what it yields comes out here."""
        lane = self._idle.pop() if self._idle else Lane()
        return Crossing(respond, turn, lane=lane, home=self._idle)

    def close(self) -> None:
        """Stop the idle lanes. One that is blocked dies with the process."""
        while self._idle:
            self._idle.pop().stop()


class Crossing(AsyncIterator[object]):
    """One call of an agent on a lane, as an asynchronous iterator of the caller's loop."""

    def __init__(self, respond: Agent, turn: Turn, *, lane: Lane, home: list[Lane]) -> None:
        self._items: deque[object] = deque()
        self._lane = lane
        self._home = home
        self._loop = asyncio.get_running_loop()
        self._ready = asyncio.Event()
        self._room = asyncio.Event()
        self._signalled = False
        self._full = False
        self._ended = False
        self._error: BaseException | None = None
        self._task: asyncio.Task[None] | None = None
        lane.loop.call_soon_threadsafe(self._start, respond, turn)

    # On the caller's loop -------------------------------------------------------------------

    async def __anext__(self) -> object:
        while not self._items:
            if self._ended:
                raise self._error or StopAsyncIteration
            self._ready.clear()
            if not (self._items or self._ended):
                await self._ready.wait()
        item = self._items.popleft()
        if self._full and len(self._items) < LOW:
            self._full = False
            self._lane.loop.call_soon_threadsafe(self._room.set)
        return item

    async def aclose(self) -> None:
        """Cancel the agent and wait until it has stopped, however long that takes."""
        self._lane.loop.call_soon_threadsafe(self._cancel)
        while not self._ended:
            self._ready.clear()
            if not self._ended:
                await self._ready.wait()
        if self._lane not in self._home:
            self._home.append(self._lane)

    def _wake(self) -> None:
        self._signalled = False
        self._ready.set()

    # On the lane ----------------------------------------------------------------------------

    def _start(self, respond: Agent, turn: Turn) -> None:
        self._task = self._lane.loop.create_task(self._pump(respond, turn))
        self._task.add_done_callback(self._finished)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _pump(self, respond: Agent, turn: Turn) -> None:
        try:
            generator = cast(AsyncGenerator[object, None], respond(turn))
            async with aclosing(generator) as items:
                async for item in items:
                    await self._wait_for_room()
                    self._items.append(item)
                    self._signal()
        except BaseException as error:  # noqa: BLE001 - it is raised again on the other side
            self._error = error

    def _finished(self, task: asyncio.Task[None]) -> None:
        """Also for a task that was cancelled before its first step."""
        self._ended = True
        self._signal()

    async def _wait_for_room(self) -> None:
        while len(self._items) >= HIGH:
            self._room.clear()
            self._full = True
            if len(self._items) >= HIGH:
                await self._room.wait()

    def _signal(self) -> None:
        if not self._signalled:
            self._signalled = True
            self._loop.call_soon_threadsafe(self._wake)
