"""Streams through real sockets: what every reader sees, wherever it starts and stops."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from tests.live_agents import HOSTILE
from tests.live_client import rows

pytest_plugins = ["tests.live"]

EVENTS = 32
"""What `rounds` makes of ten rounds: run_started, three a round, run_completed."""
HELD = 16
"""How many of them are out while it waits for its gate."""
HEADERS = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache, no-transform",
    "x-accel-buffering": "no",
}
CURSORS = ["", "-1", "+5", "1_000", "1e3", "0x10", "5.0", "NaN", "9" * 21, "5,6", "null"]
CURSORS += ["\u0665", "\uff15"]  # digits, but not ASCII


def as_agent_messages(run_id, log):
    """The agent protocol's version of a log of deltas and tools, spelled out."""
    fields = {"tool_call_id": "toolCallId", "finish_reason": "finishReason"}
    for seq, type, data in log:
        named = {fields.get(name, name): value for name, value in data.items()}
        message = {"runId": run_id, "sequence": seq + 1, "type": type, **named}
        if type == "delta":
            message["type"], message["delta"] = "token_delta", message.pop("text")
        yield (seq, None, message)


async def finished(visitor, agent="words", **metadata):
    """A run that is over, and its log."""
    run_id = await visitor.ask(agent, **metadata)
    await visitor.read(run_id)
    return run_id, await visitor.log(run_id)


# Every cut point ------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", ["koda", "agent"])
async def test_wherever_a_reader_of_a_finished_run_is_cut_the_two_parts_are_the_log(live, protocol):
    async with live.visitor() as visitor:
        run_id, log = await finished(visitor, "rounds")
        whole = list(as_agent_messages(run_id, log)) if protocol == "agent" else log
        assert [seq for seq, _, _ in log] == list(range(EVENTS))

        async def cut_at(k):
            params = {"protocol": protocol}
            async with visitor.watch(run_id, params=params) as stream:
                first = await stream.take(k)
            last_id = first[-1].id if first else None
            rest = await visitor.read(run_id, last_id=last_id, params=params)
            assert len(first) == k
            assert rows(first + rest) == whole

        await asyncio.gather(*map(cut_at, range(EVENTS + 1)))


@pytest.mark.parametrize("protocol", ["koda", "agent"])
async def test_wherever_a_reader_of_a_live_run_is_cut_the_two_parts_are_the_log(live, protocol):
    params = {"protocol": protocol}
    gate = live.gate()
    async with live.visitor() as visitor, AsyncExitStack() as streams:
        run_id = await visitor.ask("rounds", gate=str(gate))

        async def cut_at(k):
            async with visitor.watch(run_id, params=params) as stream:
                return await stream.take(k)

        async def resume(first):
            last_id = first[-1].id if first else None
            watch = visitor.watch(run_id, last_id=last_id, params=params)
            return await streams.enter_async_context(watch)

        firsts = await asyncio.gather(*map(cut_at, range(HELD + 1)))
        resumed = await asyncio.gather(*map(resume, firsts))
        later = [asyncio.create_task(cut_at(k)) for k in range(HELD + 1, EVENTS + 1)]
        assert live.status(run_id) == "streaming"
        gate.touch()

        later_firsts = await asyncio.gather(*later)
        later_rests = [
            await visitor.read(run_id, last_id=f[-1].id, params=params) for f in later_firsts
        ]
        rests = await asyncio.gather(*(stream.to_end() for stream in resumed))
        log = await visitor.log(run_id)
        whole = list(as_agent_messages(run_id, log)) if protocol == "agent" else log
        assert len(log) == EVENTS
        for first, rest in zip(firsts + later_firsts, [*rests, *later_rests], strict=True):
            assert rows(first + rest) == whole
        assert [len(first) for first in firsts + later_firsts] == list(range(EVENTS + 1))


# Where to start -------------------------------------------------------------------------------


async def test_the_header_and_the_query_name_the_last_id_and_the_header_wins(live):
    async with live.visitor() as visitor:
        run_id, log = await finished(visitor)
        by_query = await visitor.read(run_id, params={"last_event_id": "0"})
        both = await visitor.read(run_id, last_id=1, params={"last_event_id": "0"})
        assert rows(await visitor.read(run_id, last_id=0)) == rows(by_query) == log[1:]
        assert rows(both) == log[2:]


@pytest.mark.parametrize("cursor", CURSORS)
async def test_a_last_id_that_is_no_number_is_a_first_connection(live, cursor):
    async with live.visitor() as visitor:
        run_id, log = await finished(visitor)
        params = {"last_event_id": cursor}
        headers = {"Last-Event-ID": cursor.encode()}
        assert rows(await visitor.read(run_id, params=params)) == log
        assert rows(await visitor.read(run_id, headers=headers)) == log


async def test_blanks_around_a_last_id_count_but_leading_noughts_do_not(live):
    async with live.visitor() as visitor:
        run_id, log = await finished(visitor, "rounds")
        assert rows(await visitor.read(run_id, params={"last_event_id": " 5"})) == log
        assert rows(await visitor.read(run_id, params={"last_event_id": "5\n"})) == log
        assert rows(await visitor.read(run_id, params={"last_event_id": "007"})) == log[8:]


@pytest.mark.parametrize("cursor", ["{end}", "999999", "9" * 18])
async def test_a_last_id_beyond_the_log_is_refused(live, cursor):
    async with live.visitor() as visitor:
        run_id, log = await finished(visitor)
        async with visitor.watch(run_id, last_id=cursor.format(end=len(log))) as stream:
            await stream.response.aread()
            assert stream.status == 400
            assert stream.response.json()["code"] == "cursor_ahead"


@pytest.mark.parametrize("agent", ["words", "failing", "silent"])
async def test_a_run_that_is_over_answers_204_once_everything_was_received(live, agent):
    async with live.visitor() as visitor:
        run_id = await visitor.ask(agent, gate=str(live.gate()))
        if agent == "silent":
            await visitor.call("POST", f"runs/{run_id}/cancel")
        await visitor.read(run_id)
        last = (await visitor.log(run_id))[-1]
        assert rows(await visitor.read(run_id, last_id=last[0] - 1)) == [last]
        async with visitor.watch(run_id, last_id=last[0]) as stream:
            assert stream.status == 204


async def test_the_stream_of_a_pending_run_opens_within_a_second(live):
    gate = live.gate()
    async with live.visitor() as visitor:
        conversation = await visitor.conversation("patient")
        await visitor.say(conversation, "first", metadata={"gate": str(gate)})
        queued = await visitor.say(conversation, "second", on_busy="queue")
        run_id = queued["run"]["id"]
        loop = asyncio.get_running_loop()
        waits = []
        for _ in range(3):  # the best of three: the machine may be busy, the server may not
            asked = loop.time()
            async with visitor.watch(run_id) as stream:
                opening = [(await stream.next()).line, (await stream.next()).line]
                waits.append(loop.time() - asked)
            assert opening == ["retry: 2000", ": koda"]
            assert {name: stream.headers[name] for name in HEADERS} == HEADERS
        assert live.status(run_id) == "pending"
        assert min(waits) < 1
        gate.touch()
        assert rows(await visitor.read(run_id)) == await visitor.log(run_id)


async def test_an_unknown_protocol_is_named_in_the_refusal(live):
    async with live.visitor() as visitor:
        run_id, _ = await finished(visitor)
        path = f"runs/{run_id}/stream?protocol=morse"
        refusal = await visitor.call("GET", path, expect=422)
        assert refusal["code"] == "unknown_protocol"
        assert "protocol" in refusal["detail"]


async def test_hostile_text_arrives_as_text(live):
    async with live.visitor() as visitor:
        run_id = await visitor.ask("hostile")
        transcript = await visitor.read(run_id)
        log = await visitor.log(run_id)
        assert rows(transcript) == log
        assert [frame.event for frame in transcript] == [
            "run_started",
            "delta",
            "reasoning",
            "tool_started",
            "tool_completed",
            "tool_started",
            "tool_failed",
            "run_failed",
        ]
        assert transcript[1].data == transcript[2].data == {"text": HOSTILE}
        assert transcript[3].data["input"] == {HOSTILE: HOSTILE}
        assert transcript[-1].data == {"code": HOSTILE, "message": HOSTILE}
        params = {"protocol": "agent"}
        messages = await visitor.read(run_id, params=params)
        assert [frame.data["sequence"] for frame in messages] == list(range(1, len(log) + 1))
