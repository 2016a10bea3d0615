"""Collapsed and long runs over real sockets: whatever cursor comes, nothing is missing."""

import asyncio
import json
import subprocess
import sys
from uuid import UUID

from runs.events import StoredEvent
from runs.projection import Projection
from runs.reducer import fold, initial_agent_state, reduce_agent_event
from tests.live_client import rows
from tests.live_databases import ROOT

pytest_plugins = ["tests.live"]

AGENT = {"protocol": "agent"}
CLOSED_WITHIN = 60
"""Seconds. Two are promised; what hangs, hangs for ever."""


def archive(system):
    """What retention would do once everything that is over has been over for long."""
    environment = system.environment_of("archive_runs") | {"KODA_FRAGMENT_RETENTION": "0"}
    command = [sys.executable, "manage.py", "archive_runs"]
    subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)


def reduced(run_id, frames):
    state = initial_agent_state(run_id)
    for frame in frames:
        state = reduce_agent_event(state, frame.data)
    return state


async def ended(visitor, agent, **metadata):
    """A run that is over, and its log."""
    run_id = await visitor.ask(agent, **metadata)
    if agent == "silent":
        await visitor.call("POST", f"runs/{run_id}/cancel")
    await visitor.read(run_id)
    return run_id, await visitor.log(run_id)


async def check_collapsed(visitor, run_id, log):
    """Every kind of cursor that a client may have kept, and both protocols."""
    *before, (last, *end) = log
    state = fold(run_id, [StoredEvent(*row) for row in before])
    whole = fold(run_id, [StoredEvent(*row) for row in log])
    short = [(last - 1, "snapshot", state), (last, *end)]
    assert await visitor.log(run_id) == short
    async with asyncio.timeout(CLOSED_WITHIN):
        for cursor in {None, *(old for old in (0, last // 2, last - 2) if 0 <= old < last - 1)}:
            assert rows(await visitor.read(run_id, last_id=cursor)) == short
        assert reduced(run_id, await visitor.read(run_id, params=AGENT)) == whole
        assert rows(await visitor.read(run_id, last_id=last - 1)) == short[1:]
    for cursor, status in ((last, 204), (last + 1, 400)):
        async with visitor.watch(run_id, last_id=cursor) as stream:
            assert stream.status == status


async def test_a_collapsed_run_serves_every_cursor_also_after_a_restart(launch):
    system = launch()
    gate = system.gate()
    async with system.visitor() as visitor:
        held = await visitor.ask("rounds", gate=str(gate))
        async with visitor.watch(held) as stream:
            before = await stream.take(5)
            runs = [
                await ended(visitor, "rounds"),
                await ended(visitor, "words", count=0),
                await ended(visitor, "failing"),
                await ended(visitor, "silent", gate=str(system.gate())),
            ]
            assert [log[-1][1] for _, log in runs] == [
                "run_completed",
                "run_completed",
                "run_failed",
                "run_cancelled",
            ]
            archive(system)
            await asyncio.gather(*(check_collapsed(visitor, *run) for run in runs))
            gate.touch()
            assert rows(before + await stream.to_end()) == await visitor.log(held)
    system.gateway.kill()
    system.gateway.start()
    async with system.visitor() as again:
        again.http.cookies = visitor.http.cookies
        await asyncio.gather(*(check_collapsed(again, *run) for run in runs))


async def test_of_a_log_whose_first_half_is_gone_every_cursor_gets_the_rest(live):
    async with live.visitor() as visitor:
        run_id, log = await ended(visitor, "rounds", rounds=66)
        assert len(log) == 200
        made = Projection(run_id)
        made.extend([StoredEvent(*row) for row in log[:100]])
        run, state = UUID(run_id).hex, made.state()
        where = "WHERE run_id = %s AND seq"
        for sql, *given in (
            (f"DELETE FROM koda_messages {where} < 99", run),
            (f"UPDATE koda_messages SET type = 'snapshot' {where} = 99", run),
            (f"UPDATE koda_messages SET data = %s {where} = 99", json.dumps(state), run),
        ):
            live.database.rows(f"{sql} RETURNING seq", *given)
        async with asyncio.timeout(CLOSED_WITHIN):
            for cursor in (None, 50):
                found = rows(await visitor.read(run_id, last_id=cursor))
                assert found == [(99, "snapshot", state), *log[100:]]
            assert rows(await visitor.read(run_id, last_id=99)) == log[100:]


async def test_a_long_log_is_one_snapshot_and_the_rest_while_it_grows_and_afterwards(live):
    gate = live.gate()
    async with live.visitor() as visitor:
        run_id = await visitor.ask("rounds", rounds=400, hold_at=380, gate=str(gate))
        async with visitor.watch(run_id) as first:
            seen = await first.take(1 + 3 * 380)
            assert [frame.id for frame in seen] == list(range(1 + 3 * 380))
            async with (
                visitor.watch(run_id) as late,
                visitor.watch(run_id, last_id=100, params=AGENT) as agent,
                visitor.watch(run_id, last_id=200) as near,
            ):
                [snapshot] = await late.take(1)
                opening = await agent.take(1)
                log = [StoredEvent(f.id, f.event, f.data) for f in seen]
                assert (snapshot.id, snapshot.event) == (log[-1].seq, "snapshot")
                assert snapshot.data == fold(run_id, log)
                assert opening[0].data["type"] == "snapshot"
                gate.touch()
                rest = await first.to_end()
                assert rows(await late.to_end()) == rows(rest)
                messages = opening + await agent.to_end()
                assert rows(await near.to_end()) == rows(seen[201:] + rest)
        log += [StoredEvent(f.id, f.event, f.data) for f in rest]
        assert reduced(run_id, messages) == fold(run_id, log)
        after = await visitor.read(run_id, params=AGENT)
        assert len(after) <= 1 + 1000
        assert reduced(run_id, after) == fold(run_id, log)
