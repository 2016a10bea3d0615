"""A real worker on the real database, inside the test's event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connection

from runs import conf, services
from runs.agents.base import Agent
from runs.agents.registry import LoadedAgent
from runs.models import Conversation, Run
from runs.states import Status
from runs.worker import Worker, worker_name
from tests.fakes import RecordingPort
from tests.waiting import until


def agents(**named: Agent) -> dict[str, LoadedAgent]:
    """Loaded as cooperative: tests hand them things on the loop that they share."""
    return {
        name: LoadedAgent(name, "", respond, cooperative=True) for name, respond in named.items()
    }


@asynccontextmanager
async def working(
    port: RecordingPort | None = None, *, name: str = "w", **named: Agent
) -> AsyncIterator[Worker]:
    """A worker with these agents; stopped (drained) at the end, its side tasks checked."""
    worker = Worker(
        name=worker_name(name),
        agents=agents(**named),
        port=port or RecordingPort(),
        settings=conf.get(),
    )
    task = asyncio.create_task(worker.run())
    try:
        yield worker
    finally:
        worker.stop()
        await task


async def db(work: Callable[..., Any], *args: object, **kwargs: object) -> Any:  # noqa: ANN401
    """Database work on a thread, whose connection is given back at once."""

    def then_close() -> object:
        try:
            return work(*args, **kwargs)
        finally:
            connection.close()

    return await sync_to_async(then_close, thread_sensitive=False)()


async def visitor_conversation() -> Conversation:
    return await db(Conversation.objects.create, visitor_key="visitor", agent="scripted")


async def asked(text: str = "question") -> tuple[Conversation, Run]:
    """A new conversation, and the pending run of its first message."""
    conversation = await visitor_conversation()
    return conversation, (await db(services.submit, conversation, text)).run


async def reaches(run: Run, *statuses: Status, timeout: float = 15) -> Run:  # noqa: ASYNC109
    """Wait until the run has one of these statuses."""
    found: list[Run] = []

    async def look() -> bool:
        found[:] = [await db(Run.objects.get, pk=run.pk)]
        return found[0].status in statuses

    async with asyncio.timeout(timeout):
        while not await look():
            await until(lambda: True, "a moment")
    return found[0]


class Stage:
    """An agent for races: it speaks when the test lets it, and remembers what it was given."""

    def __init__(self) -> None:
        self.turns: list[list[str]] = []
        self.cancelled = 0
        self.say: asyncio.Queue[object] = asyncio.Queue()

    async def respond(self, turn: Any) -> AsyncIterator[object]:  # noqa: ANN401
        self.turns.append(list(turn.inputs))
        try:
            while (item := await self.say.get()) is not None:
                if isinstance(item, BaseException):
                    raise item
                yield item
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
