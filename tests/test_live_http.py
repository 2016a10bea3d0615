"""HTTP at a running system's door. Bad input gets a clear refusal that names the value, and leaves
nothing half-written."""

import json
from uuid import uuid4

import pytest

pytest_plugins = ["tests.live"]

TABLES = ("koda_conversations", "koda_runs", "koda_run_inputs")
NEW = "conversations"
PROBLEM = "application/problem+json"


@pytest.fixture
async def visitor(live):
    async with live.visitor() as someone:
        yield someone


def contents(live):
    """How many rows there are: what a refused call must not change."""
    return {table: live.database.count(table) for table in TABLES}


async def refusal(visitor, method, path, *, expect, **more):
    """The problem document that a call is refused with."""
    response = await visitor.http.request(method, f"/api/{path}", **more)
    assert response.status_code == expect, response.text[:2000]
    assert response.headers["Content-Type"] == PROBLEM
    body = response.json()
    assert body["status"] == expect
    assert {"type", "title", "detail", "code"} <= body.keys()
    return body


# Bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "text"),
        ({"text": None}, "text"),
        ({"text": 5}, "text"),
        ({"text": ["hi"]}, "text"),
        ({"text": ""}, "text"),
        ({"text": " \n\u3000"}, "text"),
        ({"text": "x" * 20_001}, "text"),
        ({"text": "hi", "on_busy": "shout"}, "on_busy"),
        ({"text": "hi", "on_busy": 1}, "on_busy"),
        ({"text": "hi", "agent": "nobody"}, "agent"),
        ({"text": "hi", "agent": 7}, "agent"),
        ({"text": "hi", "metadata": "loud"}, "metadata"),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_a_wrong_value_in_a_message_is_named_and_nothing_is_written(
    live, visitor, body, field
):
    conversation = await visitor.conversation("words")
    before = contents(live)
    path = f"conversations/{conversation}/messages"
    problem = await refusal(visitor, "POST", path, json=body, expect=422)
    assert problem["errors"][0]["field"] == field
    assert contents(live) == before


@pytest.mark.parametrize(
    "body",
    [b"{", b'{"text": hi}', b"\xff\xfe", b'{"text": "a"} x', b"[" * 100_000],
    ids=["cut off", "a bare word", "no UTF-8", "more behind it", "bottomless"],
)
async def test_a_body_that_is_not_json_is_malformed(live, visitor, body):
    conversation = await visitor.conversation("words")
    before = contents(live)
    for path in (NEW, f"conversations/{conversation}/messages"):
        headers = {"Content-Type": "application/json"}
        problem = await refusal(visitor, "POST", path, content=body, headers=headers, expect=400)
        assert problem["code"] == "malformed"
    assert contents(live) == before


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b"5", b'"text"'])
async def test_json_that_is_no_object_is_refused(live, visitor, body):
    conversation = await visitor.conversation("words")
    before = contents(live)
    for path in (NEW, f"conversations/{conversation}/messages"):
        headers = {"Content-Type": "application/json"}
        await refusal(visitor, "POST", path, content=body, headers=headers, expect=422)
    assert contents(live) == before


@pytest.mark.parametrize(
    ("method", "path", "more", "field"),
    [
        ("POST", NEW, {"json": {"agent": "nobody"}}, "agent"),
        ("POST", NEW, {"json": {"title": "x" * 201}}, "title"),
        ("POST", NEW, {"json": {"title": 5}}, "title"),
        ("PATCH", "conversations/{conversation}", {"json": {}}, "title"),
        ("PATCH", "conversations/{conversation}", {"json": {"title": "x" * 201}}, "title"),
        ("GET", "conversations?cursor=yesterday", {}, "cursor"),
        ("GET", "runs/{run}/events?after=x", {}, "after"),
        ("GET", "runs/{run}/events?after=-2", {}, "after"),
        ("GET", f"runs/{{run}}/events?after={'9' * 30}", {}, "after"),
        ("GET", "runs/{run}/events?limit=0", {}, "limit"),
        ("GET", "runs/{run}/events?limit=1000000", {}, "limit"),
    ],
)
async def test_a_wrong_value_anywhere_is_named(visitor, method, path, more, field):
    conversation = await visitor.conversation("words")
    run_id = (await visitor.say(conversation, "go"))["run"]["id"]
    where = path.format(conversation=conversation, run=run_id)
    problem = await refusal(visitor, method, where, expect=422, **more)
    assert problem["errors"][0]["field"] == field


async def test_what_does_not_exist_is_not_found(live, visitor):
    before = contents(live)
    for name in (uuid4(), "nonsense", "0", "..%2f", "a%00b"):
        calls = [
            ("GET", f"runs/{name}"),
            ("GET", f"runs/{name}/stream"),
            ("GET", f"runs/{name}/events"),
            ("POST", f"runs/{name}/cancel"),
            ("GET", f"conversations/{name}"),
            ("DELETE", f"conversations/{name}"),
        ]
        for method, path in calls:
            assert (await refusal(visitor, method, path, expect=404))["code"] == "not_found"
        path = f"conversations/{name}/messages"
        await refusal(visitor, "POST", path, json={"text": "hi"}, expect=404)
    assert (await refusal(visitor, "GET", "nothing/here", expect=404))["code"] == "not_found"
    assert contents(live) == before


async def test_a_post_without_the_csrf_token_changes_nothing(live, visitor):
    conversation = await visitor.conversation("silent")
    run_id = (await visitor.say(conversation, "go", metadata={"gate": str(live.gate())}))["run"][
        "id"
    ]
    before = contents(live)
    visitor.http.headers.pop("X-CSRFToken")
    calls = [
        ("POST", NEW, {}),
        ("POST", f"conversations/{conversation}/messages", {"text": "hi"}),
        ("PATCH", f"conversations/{conversation}", {"title": "mine"}),
        ("DELETE", f"conversations/{conversation}", None),
        ("POST", f"runs/{run_id}/cancel", None),
    ]
    for method, path, body in calls:
        problem = await refusal(visitor, method, path, json=body, expect=403)
        assert problem["code"] == "csrf_failed"
    assert contents(live) == before
    assert live.status(run_id) not in {"cancelled", "done"}


async def test_a_body_beyond_the_limit_is_too_large(live, visitor):
    conversation = await visitor.conversation("words")
    before = contents(live)
    body = {"text": "hi", "metadata": {"padding": "x" * 2_000_000}}
    path = f"conversations/{conversation}/messages"
    await refusal(visitor, "POST", path, json=body, expect=413)
    assert contents(live) == before


@pytest.mark.parametrize(
    "text",
    ["a\0b", "a\ud800b", "你好 😀\u2028\x85\x1c", "x" * 20_000],
    ids=["NUL", "half a pair", "odd blanks", "longest"],
)
async def test_any_text_within_the_limit_is_answered(visitor, text):
    conversation = await visitor.conversation("patient")
    path = f"conversations/{conversation}/messages"
    headers = {"Content-Type": "application/json"}
    answer = await visitor.call(
        "POST", path, content=json.dumps({"text": text}), headers=headers, expect=201
    )
    run_id = answer["run"]["id"]
    await visitor.read(run_id)
    stored = text.replace("\0", "\ufffd").replace("\ud800", "\ufffd")
    run = await visitor.run(run_id)
    assert run["inputs"][0]["text"] == stored
    assert run["output"] == f"One moment. You said: {stored}"


@pytest.mark.parametrize(
    "value",
    ['"a\\u0000b"', '"a\\ud800b"', '{"a\\u0000b": 1}', "NaN", "1e999", "18446744073709551616"],
)
async def test_metadata_that_no_database_takes_is_cleaned_or_refused(live, visitor, value):
    conversation = await visitor.conversation("words")
    body = f'{{"text": "hi", "metadata": {{"odd": {value}}}}}'
    path = f"/api/conversations/{conversation}/messages"
    headers = {"Content-Type": "application/json"}
    response = await visitor.http.post(path, content=body, headers=headers)
    assert response.status_code in {201, 400, 422}, response.text
    if response.status_code == 201:
        run_id = response.json()["run"]["id"]
        assert (await visitor.read(run_id))[-1].event == "run_completed"


# The rest -------------------------------------------------------------------------------------


async def test_a_running_system_is_alive_and_ready(visitor):
    assert (await visitor.http.get("/healthz")).json() == {"status": "ok"}
    ready = (await visitor.http.get("/readyz")).json()
    assert ready == {"status": "ok", "database": "ok", "layer": "ok"}


async def test_the_agents_are_listed_with_what_they_do(visitor):
    listed = await visitor.call("GET", "agents")
    agents = {agent["name"]: agent["description"] for agent in listed["agents"]}
    assert {"demo", "openai", "words"} <= agents.keys()
    assert agents["failing"] == "Breaks off with the provider's word for it."
    assert listed["default"] == "demo"


async def test_the_schema_names_every_call_and_its_page_is_served(visitor):
    paths = (await visitor.call("GET", "openapi.json"))["paths"]
    calls = {f"{method.upper()} {path}" for path, methods in paths.items() for method in methods}
    assert {
        "POST /api/conversations",
        "GET /api/conversations",
        "GET /api/conversations/{conversation_id}",
        "PATCH /api/conversations/{conversation_id}",
        "DELETE /api/conversations/{conversation_id}",
        "POST /api/conversations/{conversation_id}/messages",
        "GET /api/runs/{run_id}",
        "GET /api/runs/{run_id}/events",
        "POST /api/runs/{run_id}/cancel",
        "GET /api/agents",
    } <= calls
    assert (await visitor.http.get("/api/docs")).status_code == 200


async def test_where_visitors_are_not_admitted_every_call_says_sign_in(launch):
    system = launch(KODA_ALLOW_ANONYMOUS="0")
    run = "runs/01890000-0000-7000-8000-000000000000"
    async with system.visitor() as visitor:
        for method, path in [("GET", "conversations"), ("GET", run), ("GET", f"{run}/stream")]:
            refusal = await visitor.call(method, path, expect=401)
            assert refusal["code"] == "not_signed_in"
        await visitor.call("POST", "conversations", json={}, expect=401)
    assert system.database.count("koda_conversations") == 0
