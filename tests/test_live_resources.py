"""What many watchers cost a gateway: few connections, few threads, bounded memory."""

from __future__ import annotations

from contextlib import closing

import psutil
import pytest

from tests.live import Launcher
from tests.live_client import rows
from tests.raw import raw_streams
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
