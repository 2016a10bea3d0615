"""What many watchers cost: few connections, bounded memory, and nothing once they are gone."""

from __future__ import annotations

import asyncio
from contextlib import closing

import psutil
import pytest
import pytest_asyncio
import uvicorn

from koda.asgi import application
from streaming.runtime import gateway as gateway_here
from tests.live import Launcher
from tests.live_client import Visitor, rows
from tests.raw import raw_streams
from tests.reading import flush_layer
from tests.servers import HOST, free_port
from tests.waiting import until

pytest_plugins = ["tests.live"]

MEGABYTE = 1024 * 1024
POOL = 10
SOON = 30
"""Seconds within which a gateway has to be as it was."""


@pytest.fixture(scope="module")
def split(databases, tmp_path_factory):
    """A gateway without a worker in it; on SQLite it hears by looking often."""
    with closing(Launcher(databases, tmp_path_factory.mktemp)) as launcher:
        yield launcher(split=True, KODA_SWEEP_INTERVAL="0.2")


def connections(system) -> int:
    return system.database.connections_of(system.gateway.pid, system.gateway.name)


async def test_a_hundred_and_fifty_idle_watchers_cost_few_connections_and_threads(split):
    process = psutil.Process(split.gateway.pid)
    gate = split.gate()
    async with split.visitor() as visitor:
        runs = [await visitor.ask("silent", gate=str(gate)) for _ in range(5)]
        await until(lambda: split.status(runs[-1]) == "running", "the last claim", timeout=30)
        threads, files = process.num_threads(), process.num_fds()
        async with raw_streams(visitor, runs, 150):
            assert connections(split) <= POOL
            assert process.num_threads() <= threads + 5
            assert await visitor.ask("words"), "a message is taken all the same"
            for _ in range(4):
                async with raw_streams(visitor, runs, 50):
                    assert connections(split) <= POOL
            assert process.num_threads() <= threads + 5
        few = files + POOL
        await until(lambda: process.num_fds() <= few, "the sockets to be closed", timeout=SOON)
        gate.touch()
        assert rows(await visitor.read(runs[0])) == await visitor.log(runs[0])


async def test_watchers_that_stop_reading_cost_little_memory_and_delay_nobody(split):
    process = psutil.Process(split.gateway.pid)
    async with split.visitor() as visitor:
        await visitor.read(await visitor.ask("words"))
        run_id = await visitor.ask("words", count=400, size=65_000)
        async with raw_streams(visitor, [run_id], 10, buffer=4096):
            before = process.memory_info().rss
            read = 0
            async with visitor.watch(run_id) as stream:
                while (frame := await stream.next()) is not None:
                    read += len((frame.data or {}).get("text", ""))
            assert read == 400 * 65_000
            grown = process.memory_info().rss - before
            assert grown < 100 * MEGABYTE, f"of ten times {read // MEGABYTE} MiB"


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
