"""Processes that die, end politely, or are corrected in the middle of an answer."""

import asyncio
from itertools import pairwise

import pytest

from tests.live_client import Follower, rows, text_of
from tests.waiting import until

pytest_plugins = ["tests.live"]

HELD = 16
"""Events of `rounds` that are out while it waits for its gate, of 32."""
QUICK = {"KODA_SWEEP_INTERVAL": "0.5"}
"""The speed of delivery where a gateway and a worker have no Redis between them."""


def follow(visitor, run_id, gateway, count):
    """So many pages that follow a run, and the tasks in which they do."""
    pages = [Follower(visitor, run_id, gateway.reachable) for _ in range(count)]
    return pages, [asyncio.create_task(page.follow()) for page in pages]


async def seen_by_all(pages, count):
    await until(
        lambda: all(len(page.events) >= count for page in pages),
        f"{count} events on each of {len(pages)} pages",
        timeout=30,
    )


async def test_a_gateway_killed_in_mid_answer_costs_its_readers_nothing(launch):
    system = launch(split=True, **QUICK)
    gate = system.gate()
    async with system.visitor() as visitor:
        run_id = await visitor.ask("rounds", gate=str(gate))
        pages, following = follow(visitor, run_id, system.gateway, 5)
        await seen_by_all(pages, HELD)
        system.gateway.kill()
        gate.touch()
        await until(lambda: system.status(run_id) == "done", "the end without a gateway")
        system.gateway.start()
        await asyncio.gather(*following)
        log = await visitor.log(run_id)
        assert [seq for seq, _, _ in log] == list(range(32))
        assert {type for _, type, _ in log} & {"run_restarted", "run_failed"} == set()
        for page in pages:
            assert rows(page.events) == log
            assert page.connections == 2


async def test_a_gateway_killed_again_and_again_while_text_flows_costs_nothing(launch):
    system = launch(split=True, **QUICK)
    async with system.visitor() as visitor:
        run_id = await visitor.ask("words", count=180, pace=0.02)
        pages, following = follow(visitor, run_id, system.gateway, 5)
        for seen in (10, 50):
            await seen_by_all(pages, seen)
            system.gateway.kill()
            system.gateway.start()
        await asyncio.gather(*following)
        log = await visitor.log(run_id)
        assert text_of(log) == "".join(f"w{number} " for number in range(180))
        assert all(rows(page.events) == log for page in pages)
        assert (await visitor.run(run_id))["attempt"] == 1


@pytest.mark.parametrize("split", [True, False], ids=["gateway", "serve"])
async def test_sigterm_ends_streams_politely_and_within_ten_seconds(launch, split):
    system = launch(split=split, **QUICK)
    gate = system.gate()
    async with system.visitor() as visitor:
        run_id = await visitor.ask("rounds", gate=str(gate))
        pages, following = follow(visitor, run_id, system.gateway, 5)
        await seen_by_all(pages, HELD)
        system.gateway.terminate()
        await until(system.gateway.ended, "the exit after SIGTERM", timeout=10)
        assert system.gateway.code == 0
        for page in pages:
            assert set(page.errors) == {"reconnect"}
        gate.touch()
        system.gateway.start()
        await asyncio.gather(*following)
        log = await visitor.log(run_id)
        assert [seq for seq, _, _ in log] == list(range(len(log)))
        assert text_of(log) == "".join(f"word {number} " for number in range(10))
        assert all(rows(page.events) == log for page in pages)
        untouched = "run_restarted" not in {type for _, type, _ in log}
        assert untouched == split, "a run survives its gateway, and starts again without its worker"


async def test_clients_of_a_gateway_that_ends_resume_at_another(launch):
    system = launch(split=True, **QUICK)
    other, gate = system.add("gateway"), system.gate()
    other.wait()
    async with system.visitor() as visitor, system.visitor(other) as elsewhere:
        run_id = await visitor.ask("rounds", gate=str(gate))
        elsewhere.http.cookies = visitor.http.cookies
        async with visitor.watch(run_id) as stream:
            first = await stream.take(HELD)
            system.gateway.terminate()
            farewell = await stream.find(lambda frame: frame.event == "error", "a farewell")
            assert farewell.data["code"] == "reconnect"
        async with elsewhere.watch(run_id, last_id=first[-1].id) as stream:
            assert (await stream.next()).line == "retry: 2000"
            gate.touch()
            rest = await stream.to_end()
        assert rows(first + rest) == await elsewhere.log(run_id)


async def test_a_worker_killed_in_mid_answer_is_replaced_by_another(launch):
    leases = {"KODA_LEASE": "1.5", "KODA_HEARTBEAT": "0.3"}
    system = launch(split=True, **QUICK, **leases)
    gate = system.gate()
    async with system.visitor() as visitor:
        run_id = await visitor.ask("rounds", gate=str(gate))
        pages, following = follow(visitor, run_id, system.gateway, 2)
        await seen_by_all(pages, HELD)
        system.worker.kill()
        system.add("worker").wait()
        await seen_by_all(pages, HELD + 1)
        gate.touch()
        await asyncio.gather(*following)
        log = await visitor.log(run_id)
        assert [seq for seq, _, _ in log] == list(range(len(log)))
        assert log[HELD][1] == "run_restarted"
        assert log[HELD][2]["reason"] == "recovered"
        assert text_of(log) == "".join(f"word {number} " for number in range(10))
        assert all(rows(page.events) == log for page in pages)


# Corrections and turns ------------------------------------------------------------------------


async def test_a_correction_in_mid_answer_starts_the_same_answer_again(live):
    async with live.visitor() as visitor:
        conversation = await visitor.conversation("patient")
        metadata = {"gate": str(live.gate())}
        asked = await visitor.say(conversation, "where is my order?", metadata=metadata)
        run_id = asked["run"]["id"]
        async with visitor.watch(run_id) as stream:
            before = await stream.take(3)
            merged = await visitor.say(conversation, "I want to exchange it", expect=200)
            after = await stream.to_end()
        assert (merged["merged"], merged["run"]["id"], merged["position"]) == (True, run_id, 1)
        assert (asked["merged"], asked["position"]) == (False, 0)
        log = await visitor.log(run_id)
        assert rows(before + after) == log
        assert [seq for seq, _, _ in log] == list(range(len(log)))
        inputs = ["where is my order?", "I want to exchange it"]
        assert [type for _, type, _ in log[3:5]] == ["tool_failed", "run_restarted"]
        assert log[4][2] == {"reason": "merged", "attempt": 1, "inputs": inputs}
        run = await visitor.run(run_id)
        assert run["output"] == text_of(log) == f"One moment. You said: {' / '.join(inputs)}"
        assert [given["text"] for given in run["inputs"]] == inputs
        said = [line for line in live.worker.log().splitlines() if run_id in line]
        expected = "rerunning with merged input, continuing from seq 3"
        assert any(expected in line for line in said)


async def test_corrections_join_however_many_come(live):
    async with live.visitor() as visitor:
        conversation = await visitor.conversation("words")
        metadata = {"count": 150, "pace": 0.01}
        run_id = (await visitor.say(conversation, "first", metadata=metadata))["run"]["id"]
        async with visitor.watch(run_id) as stream:
            before = await stream.take(4)
            texts = [f"correction {number}" for number in range(5)]
            answers = await asyncio.gather(
                *(visitor.say(conversation, text, expect=200) for text in texts)
            )
            after = await stream.to_end()
        assert {answer["run"]["id"] for answer in answers} == {run_id}
        assert sorted(answer["position"] for answer in answers) == [1, 2, 3, 4, 5]
        log = await visitor.log(run_id)
        assert rows(before + after) == log
        run = await visitor.run(run_id)
        restarts = [data["inputs"] for _, type, data in log if type == "run_restarted"]
        assert sorted(restarts[-1][1:]) == sorted(texts)
        assert [given["text"] for given in run["inputs"]] == restarts[-1]
        assert run["output"] == "".join(f"w{number} " for number in range(150))
        assert run["status"] == "done"


@pytest.mark.parametrize("moment", ["pending", "done", "cancelled"])
async def test_a_message_that_finds_no_answer_in_progress_is_a_turn_of_its_own(live, moment):
    gate = live.gate()
    async with live.visitor() as visitor:
        conversation = await visitor.conversation("patient")
        metadata = {"gate": str(gate)}
        first = (await visitor.say(conversation, "first", metadata=metadata))["run"]["id"]
        if moment == "pending":
            before = (await visitor.say(conversation, "queued", on_busy="queue"))["run"]["id"]
            assert live.status(before) == "pending"
        else:
            before = first
        if moment == "cancelled":
            await visitor.call("POST", f"runs/{first}/cancel")
        if moment == "done":
            gate.touch()
            await visitor.read(first)
        answer = await visitor.say(conversation, "another", metadata=metadata)
        assert answer["merged"] is False
        assert answer["run"]["id"] != before
        gate.touch()
        await visitor.read(answer["run"]["id"])
        turns = (await visitor.call("GET", f"conversations/{conversation}"))["turns"]
        assert [len(turn["inputs"]) for turn in turns] == [1] * len(turns)
        assert turns[-1]["output"] == "One moment. You said: another"


async def test_a_message_after_the_merge_window_is_a_turn_of_its_own(launch):
    system = launch(KODA_MERGE_WINDOW="0.5")
    gate = system.gate()
    async with system.visitor() as visitor:
        conversation = await visitor.conversation("patient")
        metadata = {"gate": str(gate)}
        first = (await visitor.say(conversation, "first", metadata=metadata))["run"]["id"]
        loop = asyncio.get_running_loop()
        over = loop.time() + 0.6
        await until(lambda: loop.time() > over, "the end of the merge window")
        await until(lambda: system.status(first) == "streaming", "the first token", timeout=30)
        second = await visitor.say(conversation, "second")
        assert second["merged"] is False
        gate.touch()
        await visitor.read(second["run"]["id"])
        assert (await visitor.run(first))["status"] == "done"


async def test_two_conversations_are_answered_at_the_same_time(live):
    gate = live.gate()
    async with live.visitor() as visitor:
        busy = await visitor.conversation("patient")
        first = await visitor.say(busy, "first", metadata={"gate": str(gate)})
        waiting = await visitor.say(busy, "second", on_busy="queue")
        run_id = first["run"]["id"]
        await until(lambda: live.status(run_id) == "streaming", "the first token", timeout=30)
        assert (await visitor.read(await visitor.ask("words")))[-1].event == "run_completed"
        assert live.status(run_id) == "streaming"
        assert live.status(waiting["run"]["id"]) == "pending"
        gate.touch()
        assert (await visitor.read(waiting["run"]["id"]))[-1].event == "run_completed"


async def test_turns_of_one_conversation_are_answered_one_after_the_other(live):
    async with live.visitor() as visitor:
        conversation = await visitor.conversation("words")
        metadata = {"count": 5, "pace": 0.02}
        answers = await asyncio.gather(
            *(
                visitor.say(conversation, f"message {number}", on_busy="queue", metadata=metadata)
                for number in range(8)
            )
        )
        await asyncio.gather(*(visitor.read(answer["run"]["id"]) for answer in answers))
        turns = (await visitor.call("GET", f"conversations/{conversation}"))["turns"]
        assert [turn["turn"] for turn in turns] == list(range(1, 9))
        assert {turn["status"] for turn in turns} == {"done"}
        assert {turn["inputs"][0]["text"] for turn in turns} == {f"message {n}" for n in range(8)}
        for earlier, later in pairwise(turns):
            assert earlier["finished_at"] <= later["started_at"]
