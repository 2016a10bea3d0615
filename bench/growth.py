"""Curves: what happens when there is more of something. Bounded in time, once each."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import psycopg

from bench.loads import Load, paced
from bench.measure import Sample
from bench.measure import measure as measure_load
from bench.results import row_of
from bench.systems.base import System, started
from bench.systems.floor import Floor
from bench.systems.hand_rolled import HandRolled
from bench.systems.koda import Koda, KodaTwice
from bench.systems.resumable_stream import ResumableStream

RUNS = (1, 5, 20, 50, 100, 200)
MORE_RUNS = (500,)
WATCHERS = (100, 500, 1000, 2000, 5000)
MOST_WATCHERS = {"hand_rolled": 2000, "resumable_stream": 2000}
"""Where a peer's clients become more than it is meant for."""
ROWS = (1_000, 100_000, 1_000_000, 10_000_000)
SECONDS = 4.0

Point = dict[str, float | None]

COST = ("delivered_per_s", "p50_ms", "p99_ms", "cpu_s_per_100k")


async def measure(directory: Path) -> dict[str, Any]:
    """`latency` and `memory` by system for the plots, and the `curves` of Koda alone."""
    kinds: tuple[type[System], ...] = (Koda, Floor, HandRolled, ResumableStream)
    latency: dict[str, list[Point]] = {}
    memory: dict[str, list[Point]] = {}
    curves: dict[str, list[Point]] = {}
    for kind in kinds:
        async with started(kind, directory) as system:
            more = MORE_RUNS if isinstance(system, Koda) else ()
            latency[kind.name] = [await _runs(system, runs) for runs in (*RUNS, *more)]
            if isinstance(system, Koda):
                curves["Concurrent runs, 50 fragments a second each"] = latency[kind.name]
                curves["Rows stored before, 20 runs × 50/s"] = await _rows(system)
        most = MOST_WATCHERS.get(kind.name, max(WATCHERS))
        counts = [count for count in WATCHERS if count <= most]
        memory[kind.name] = [await _watchers(kind, directory, count) for count in counts]
    curves["Waiting clients of one gateway"] = memory["koda"]
    async with started(KodaTwice, directory) as system:
        curves["Two gateways and two workers"] = [await _runs(system, runs) for runs in (20, 100)]
    return {"latency": latency, "memory": memory, "curves": curves}


async def _runs(system: System, runs: int) -> Point:
    load = paced(f"{runs}x50", "", runs=runs, seconds=SECONDS)
    return {"runs": runs, **await _point(system, load, COST)}


async def _watchers(kind: type[System], directory: Path, watchers: int) -> Point:
    load = Load("waiting", "", runs=50, watchers=watchers // 50, kind="waiting")
    wanted = ("kb_per_client", "idle_cpu_percent", "database_connections")
    async with started(kind, directory) as system:
        return {"watchers": watchers, **await _point(system, load, wanted)}


async def _rows(system: Koda) -> list[Point]:
    """The same load on a log that has grown meanwhile."""
    points = []
    for rows in ROWS:
        await asyncio.to_thread(_fill, system.postgres.url, rows)
        load = paced("20x50", "", runs=20, seconds=SECONDS)
        points.append({"rows": rows, **await _point(system, load, COST)})
    return points


async def _point(system: System, load: Load, wanted: tuple[str, ...]) -> Point:
    """The measures that are wanted, None where it failed."""
    try:
        sample: Sample = await measure_load(system, load)
    except Exception as error:  # noqa: BLE001 - a curve with a gap says so
        print(f"growth {system.name} {load.name} {load.clients}: {error}", flush=True)
        return dict.fromkeys(wanted)
    row = row_of(sample, persists=system.persists)
    print(f"growth {system.name} {load.name} {load.clients}: {row}", flush=True)
    return {name: row.get(name) for name in wanted}


FILL = """
WITH runs AS (
    INSERT INTO koda_runs (
        id, conversation_id, turn, status, agent, attempt, tries, next_seq, input_count,
        claimed_by, created_at, finished_at, output, finish_reason, metadata
    )
    SELECT uuidv7(), conversation.id, 1000000 + nth, 'done', 'bench', 1, 1, 1000, 1,
        '', now(), now(), '', 'stop', '{}'
    FROM (SELECT id FROM koda_conversations LIMIT 1) AS conversation,
        generate_series(%(first)s::int, %(last)s::int) AS nth
    RETURNING id
)
INSERT INTO koda_messages (run_id, seq, type, data, created_at)
SELECT id, seq, 'delta', '{"text": "12345@1234.123456;"}', now()
FROM runs, generate_series(0, 999) AS seq
"""


def _fill(url: str, rows: int) -> None:
    """Bring the log to about so many rows, in finished runs of a thousand each."""
    with psycopg.connect(url, autocommit=True) as connection:
        found = connection.execute("SELECT count(*) FROM koda_messages").fetchone()
        have = found[0] // 1000 if found else 0
        if have < rows // 1000:
            connection.execute(FILL, {"first": have + 1, "last": rows // 1000})
            connection.execute("ANALYZE")
            connection.execute("CHECKPOINT")  # not in the middle of what is measured next
