"""Streams that vanish without a goodbye leave nothing behind."""

from __future__ import annotations

import asyncio

import pytest_asyncio
import uvicorn

from koda.asgi import application
from streaming.runtime import gateway as gateway_here
from tests.live_client import Visitor
from tests.raw import raw_streams
from tests.reading import flush_layer
from tests.servers import HOST, free_port
from tests.waiting import until

SOON = 30
"""Seconds within which a gateway has to be as it was."""


@pytest_asyncio.fixture
async def served(transactional_db, settings, visitors):
    """The application under uvicorn, on the event loop of the test. Its address."""
    port = free_port()
    config = uvicorn.Config(
        application, host=HOST, port=port, lifespan="off", log_config=None, ws="none"
    )
    server = uvicorn.Server(config)
    task = asyncio.create_task(server._serve())
    await until(lambda: server.started, "the server")
    yield f"http://{HOST}:{port}"
    server.should_exit = True
    await task
    await gateway_here().hub.stop()
    await flush_layer()


async def test_streams_that_vanish_leave_no_task_watcher_or_group_member(served):
    hub = gateway_here().hub
    async with Visitor(served) as visitor:
        runs = [await visitor.ask("demo") for _ in range(3)]
        async with raw_streams(visitor, runs, 3):
            pass
        await until(lambda: not hub._watched, "the groups to be left", timeout=SOON)
        base = len(asyncio.all_tasks())
        async with raw_streams(visitor, runs, 100):
            assert hub.watchers == 100
            assert len(asyncio.all_tasks()) > base
        await until(lambda: not hub._watched, "the groups to be left", timeout=SOON)
        assert hub.watchers == 0
        await until(lambda: len(asyncio.all_tasks()) <= base, "the tasks to end", timeout=SOON)
