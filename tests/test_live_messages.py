"""What a running system does with messages, runs and conversations over HTTP."""

import asyncio
from datetime import UTC, datetime
from uuid import UUID

import pytest

from tests.live_client import rows
from tests.waiting import until

pytest_plugins = ["tests.live"]


@pytest.fixture
async def visitor(live):
    async with live.visitor() as someone:
        yield someone


# Messages -------------------------------------------------------------------------------------


async def test_an_idempotency_key_makes_a_message_count_once(live, visitor):
    conversation = await visitor.conversation("words")
    path = f"/api/conversations/{conversation}/messages"

    async def post(key, text="hi", **more):
        body = {"text": text, "on_busy": "queue", **more}
        return await visitor.http.post(path, json=body, headers={"Idempotency-Key": key})

    twins = await asyncio.gather(*(post("k1") for _ in range(5)))
    assert {twin.status_code for twin in twins} == {201}
    [run_id] = {twin.json()["run"]["id"] for twin in twins}
    await visitor.read(run_id)
    again, other_key = await post("k1"), await post("k2")
    assert (again.status_code, again.json()["run"]["id"]) == (201, run_id)
    assert other_key.json()["run"]["id"] != run_id
    before = live.database.count("koda_run_inputs")
    for reused in (await post("k1", text="other"), await post("k1", metadata={"a": 1})):
        assert reused.status_code == 422
        assert reused.json()["code"] == "idempotency_key_reused"
    assert live.database.count("koda_run_inputs") == before
    turns = (await visitor.call("GET", f"conversations/{conversation}"))["turns"]
    assert [turn["inputs"][0]["text"] for turn in turns] == ["hi", "hi"]


async def test_the_key_of_a_correction_makes_it_count_once(live, visitor):
    conversation = await visitor.conversation("patient")
    gate = live.gate()
    run_id = (await visitor.say(conversation, "ask", metadata={"gate": str(gate)}))["run"]["id"]
    await until(lambda: live.status(run_id) == "streaming", "the first token", timeout=30)
    path = f"conversations/{conversation}/messages"
    post = {"json": {"text": "correct"}, "headers": {"Idempotency-Key": "k1"}}
    answers = await asyncio.gather(*(visitor.call("POST", path, **post) for _ in range(4)))
    assert {(a["merged"], a["position"], a["run"]["id"]) for a in answers} == {(True, 1, run_id)}
    await visitor.read(run_id)
    assert (await visitor.run(run_id))["output"] == "One moment. You said: ask / correct"


async def test_on_busy_says_what_a_message_does_while_a_run_is_open(live, visitor):
    conversation = await visitor.conversation("patient")
    gates = [live.gate(), live.gate()]
    metadata = [{"gate": str(gate)} for gate in gates]
    first = (await visitor.say(conversation, "one", metadata=metadata[0]))["run"]["id"]
    queued = (await visitor.say(conversation, "two", on_busy="queue"))["run"]["id"]
    before = live.database.count("koda_run_inputs")
    refused = await visitor.say(conversation, "three", on_busy="reject", expect=409)
    assert refused["code"] == "conversation_busy"
    assert live.database.count("koda_run_inputs") == before
    last = await visitor.say(conversation, "four", on_busy="interrupt", metadata=metadata[1])
    assert last["merged"] is False
    for run_id in (first, queued):
        run = await visitor.run(run_id)
        assert (run["status"], run["finish_reason"]) == ("cancelled", "superseded")
        end = (await visitor.read(run_id))[-1]
        assert (end.event, end.data) == ("run_cancelled", {"reason": "superseded"})
    gates[1].touch()
    await visitor.read(last["run"]["id"])
    turns = (await visitor.call("GET", f"conversations/{conversation}"))["turns"]
    assert [turn["status"] for turn in turns] == ["cancelled", "cancelled", "done"]
    free = await visitor.say(conversation, "five", on_busy="reject")
    assert (await visitor.read(free["run"]["id"]))[-1].event == "run_completed"


async def test_twenty_messages_at_once_are_all_stored_and_answered(visitor):
    conversation = await visitor.conversation("words")
    answers = await asyncio.gather(
        *(
            visitor.http.post(f"/api/conversations/{conversation}/messages", json={"text": f"{n}"})
            for n in range(20)
        )
    )
    assert {answer.status_code for answer in answers} <= {200, 201}
    for run_id in {answer.json()["run"]["id"] for answer in answers}:
        assert (await visitor.read(run_id))[-1].event == "run_completed"
    turns = (await visitor.call("GET", f"conversations/{conversation}"))["turns"]
    said = [given["text"] for turn in turns for given in turn["inputs"]]
    assert sorted(said, key=int) == [str(n) for n in range(20)]


# Runs -----------------------------------------------------------------------------------------


async def test_a_cancelled_run_keeps_its_text_and_can_be_cancelled_again(live, visitor):
    run_id = await visitor.ask("patient", gate=str(live.gate()))
    async with visitor.watch(run_id) as stream:
        before = await stream.take(3)
        cancelled = await visitor.call("POST", f"runs/{run_id}/cancel")
        after = await stream.to_end()
    assert (cancelled["status"], cancelled["finish_reason"]) == ("cancelled", "user")
    assert cancelled["output"] == "One moment. "
    assert [frame.event for frame in after] == ["tool_failed", "run_cancelled"]
    assert rows(before + after) == await visitor.log(run_id)
    assert await visitor.call("POST", f"runs/{run_id}/cancel") == cancelled
    assert await visitor.run(run_id) == cancelled


@pytest.mark.parametrize("agent", ["words", "failing"])
async def test_cancelling_a_run_that_is_over_changes_nothing(visitor, agent):
    run_id = await visitor.ask(agent)
    await visitor.read(run_id)
    run, log = await visitor.run(run_id), await visitor.log(run_id)
    assert await visitor.call("POST", f"runs/{run_id}/cancel") == run
    assert await visitor.log(run_id) == log


async def test_a_pending_run_is_cancelled_before_it_says_anything(live, visitor):
    conversation = await visitor.conversation("patient")
    gate = live.gate()
    first = await visitor.say(conversation, "one", metadata={"gate": str(gate)})
    queued = (await visitor.say(conversation, "two", on_busy="queue"))["run"]["id"]
    run = await visitor.call("POST", f"runs/{queued}/cancel")
    assert (run["status"], run["started_at"], run["last_seq"]) == ("cancelled", None, 0)
    assert [frame.event for frame in await visitor.read(queued)] == ["run_cancelled"]
    gate.touch()
    assert (await visitor.read(first["run"]["id"]))[-1].event == "run_completed"


async def test_a_failed_run_says_why_and_the_next_message_is_answered(visitor):
    conversation = await visitor.conversation("failing")
    failed = (await visitor.say(conversation, "one"))["run"]["id"]
    end = (await visitor.read(failed))[-1]
    why = {"code": "overloaded", "message": "The model is overloaded."}
    assert (end.event, end.data) == ("run_failed", why)
    run = await visitor.run(failed)
    assert (run["status"], run["error"], run["output"]) == ("failed", why, "So far so good. ")
    following = await visitor.say(conversation, "two", agent="words")
    assert following["merged"] is False
    assert (await visitor.read(following["run"]["id"]))[-1].event == "run_completed"


async def test_a_run_tells_its_times_in_order(visitor):
    run_id = await visitor.ask("words", count=3)
    await visitor.read(run_id)
    run = await visitor.run(run_id)
    stations = ("created_at", "started_at", "first_token_at", "finished_at")
    times = [datetime.fromisoformat(run[name]) for name in stations]
    assert times == sorted(times)
    assert {time.tzinfo for time in times} == {UTC}
    assert (run["attempt"], run["status"], run["output"]) == (1, "done", "w0 w1 w2 ")
    assert run["last_seq"] == (await visitor.log(run_id))[-1][0]


async def test_the_log_comes_in_pages(visitor):
    run_id = await visitor.ask("rounds", rounds=5)
    await visitor.read(run_id)
    log = await visitor.log(run_id)
    paged, after = [], -1
    while after is not None:
        path = f"runs/{run_id}/events?after={after}&limit=4"
        page = await visitor.call("GET", path)
        assert page["status"] == "done"
        assert 0 < len(page["events"]) <= 4
        paged += [(event["seq"], event["type"], event["data"]) for event in page["events"]]
        after = page["next"]
    assert paged == log
    assert (await visitor.call("GET", f"runs/{run_id}/events?after=999"))["events"] == []


# Conversations --------------------------------------------------------------------------------


async def test_conversations_are_listed_newest_first_in_pages(visitor):
    created = [await visitor.conversation(title=f"chat {number}") for number in range(53)]
    listed, cursor = [], ""
    while cursor is not None:
        page = await visitor.call("GET", f"conversations{cursor and f'?cursor={cursor}'}")
        listed += [one["id"] for one in page["conversations"]]
        cursor = page["next"]
    assert listed == created[::-1]


async def test_conversations_are_searched_by_title_question_and_answer(visitor):
    titled = await visitor.conversation(title="Quarterly report")
    asked = await visitor.conversation("patient")
    answer = await visitor.say(asked, "Where is the GIRAFFE?")
    answered = await visitor.conversation("rounds")
    await visitor.read(answer["run"]["id"])
    await visitor.read((await visitor.say(answered, "x", metadata={"rounds": 3}))["run"]["id"])

    async def found(words):
        page = await visitor.call("GET", "conversations", params={"q": words})
        return [one["id"] for one in page["conversations"]]

    assert await found("quarterly") == [titled]
    assert await found("giraffe") == [asked]
    assert await found("word 2") == [answered]
    assert await found("100%") == await found("no such words") == []
    assert await found("") == [answered, asked, titled]


async def test_a_conversation_is_named_after_its_first_message_and_can_be_renamed(visitor):
    conversation = await visitor.conversation("words")
    await visitor.say(conversation, "  where is\nmy order?  ")
    assert (await visitor.call("GET", f"conversations/{conversation}"))[
        "title"
    ] == "where is my order?"
    path = f"conversations/{conversation}"
    renamed = await visitor.call("PATCH", path, json={"title": "Order 1042"})
    assert renamed["title"] == "Order 1042"
    assert (await visitor.call("GET", path))["title"] == "Order 1042"


async def test_a_conversation_shows_its_turns_and_its_open_run(live, visitor):
    conversation = await visitor.conversation("patient")
    path = f"conversations/{conversation}"
    gate = live.gate()
    first = (await visitor.say(conversation, "one", metadata={"gate": str(gate)}))["run"]["id"]
    second = (await visitor.say(conversation, "two", on_busy="queue"))["run"]["id"]
    await until(lambda: live.status(first) == "streaming", "the first token", timeout=30)
    shown = await visitor.call("GET", path)
    assert [turn["run_id"] for turn in shown["turns"]] == [first, second]
    assert shown["open_run"]["id"] == first
    assert shown["merge_window_ms"] == 30_000
    gate.touch()
    await visitor.read(second)
    shown = await visitor.call("GET", path)
    assert shown["open_run"] is None
    assert [turn["output"] for turn in shown["turns"]] == [
        "One moment. You said: one",
        "One moment. You said: two",
    ]
    assert [[given["text"] for given in turn["inputs"]] for turn in shown["turns"]] == [
        ["one"],
        ["two"],
    ]


async def test_deleting_a_conversation_in_mid_answer_tells_its_watchers(live, visitor):
    conversation = await visitor.conversation("patient")
    gone = {"gate": str(live.gate())}
    run_id = (await visitor.say(conversation, "one", metadata=gone))["run"]["id"]
    queued = (await visitor.say(conversation, "two", on_busy="queue"))["run"]["id"]
    async with visitor.watch(run_id) as stream, visitor.watch(queued) as other:
        await stream.take(3)
        await visitor.call("DELETE", f"conversations/{conversation}", expect=204)
        for watching in (stream, other):
            end = await watching.find(lambda frame: frame.event == "error", "an explicit end")
            assert (end.id, end.data["code"]) == (None, "gone")
            assert await watching.next() is None
    for path in (f"conversations/{conversation}", f"runs/{run_id}", f"runs/{queued}/stream"):
        await visitor.call("GET", path, expect=404)
    for table, column in (("koda_messages", "run_id"), ("koda_run_inputs", "run_id")):
        sql = f"SELECT count(*) FROM {table} WHERE {column} IN (%s, %s)"
        assert live.database.rows(sql, UUID(run_id).hex, UUID(queued).hex) == [(0,)]
    assert (await visitor.read(await visitor.ask("words")))[-1].event == "run_completed"
