"""The `openai` agent against a scripted server, through real HTTP."""

import asyncio
import json
import threading
from contextlib import aclosing, suppress
from socket import create_server

import pytest

from runs.agents import (
    Finish,
    PermanentError,
    TransientError,
    Turn,
    Usage,
)
from runs.agents.openai import OpenAIAgent
from tests.asking import agent_of, ask, ask_failing, text_of, turn
from tests.stub_model import (
    StubModel,
    answer,
    chunk,
    delta,
    done,
    error_event,
    event,
    finish,
    pause,
    silence,
    until_set,
)
from tests.waiting import until

VARIABLES = ("OPENAI_BASE_URL", "OPENAI_API_KEY", "KODA_OPENAI_MODEL", "KODA_SYSTEM_PROMPT")


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch):
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture
def stub():
    with StubModel() as running:
        yield running


async def test_an_answer_is_streamed_with_its_usage_and_finish(stub):
    stub.reply(*answer("It left yesterday."))
    items = await ask(stub)
    assert items == ["It ", "left ", "yesterday.", Usage(5, 7), Finish("stop")]


async def test_the_request_holds_prompt_history_and_every_input(stub, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", stub.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("KODA_OPENAI_MODEL", "gemma")
    monkeypatch.setenv("KODA_SYSTEM_PROMPT", "Be kind.")
    stub.reply(*answer("ok"))
    history = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    asked = Turn("r1", 1, ["Where is it?", "I mean 1042"], history)
    assert text_of([item async for item in OpenAIAgent().respond(asked)]) == "ok"
    request = stub.requests[0]
    assert (request.method, request.path) == ("POST", "/v1/chat/completions")
    assert request.headers["authorization"] == "Bearer secret"
    assert request.json == {
        "model": "gemma",
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": [
            {"role": "system", "content": "Be kind."},
            *history,
            {"role": "user", "content": "Where is it?"},
            {"role": "user", "content": "I mean 1042"},
        ],
    }


@pytest.mark.parametrize(
    ("given", "code", "sentence"),
    [
        ({"model": "m"}, "missing_key", "OPENAI_API_KEY"),
        ({"model": "m", "base_url": "https://models.example.com/v1"}, "missing_key", "API_KEY"),
        ({"model": "m", "base_url": "http://8.8.8.8/v1"}, "missing_key", "OPENAI_API_KEY"),
        ({"api_key": "k"}, "missing_model", "KODA_OPENAI_MODEL"),
        ({"base_url": "http://model:8901/v1"}, "missing_model", "KODA_OPENAI_MODEL"),
        ({"base_url": "http://[::1]:8901/v1"}, "missing_model", "KODA_OPENAI_MODEL"),
        ({"base_url": "http://192.168.1.5/v1"}, "missing_model", "KODA_OPENAI_MODEL"),
        ({"base_url": "localhost:8901/v1", "model": "m"}, "bad_base_url", "http://"),
    ],
)
async def test_a_missing_setting_fails_the_run_with_a_sentence(given, code, sentence):
    with pytest.raises(PermanentError, match=sentence) as caught:
        await anext(OpenAIAgent(**given).respond(turn()))
    assert caught.value.code == code


async def test_text_arrives_while_the_model_is_still_writing(stub):
    gate = threading.Event()
    stub.reply(delta("first"), until_set(gate), delta("second"), finish(), done())
    async with aclosing(agent_of(stub).respond(turn())) as items:
        assert await anext(items) == "first"
        gate.set()
        assert await anext(items) == "second"


@pytest.mark.parametrize(
    ("step", "kind", "code"),
    [
        (error_event("boom", "It broke."), PermanentError, "boom"),
        (error_event("boom", "It broke.", name="error"), PermanentError, "boom"),
        (error_event(None, "It broke."), PermanentError, "provider_error"),
        (event({"error": "It broke."}), PermanentError, "provider_error"),
        (event({"message": "It broke.", "code": "x"}, name="error"), PermanentError, "x"),
        (event({"object": "error", "message": "It broke.", "code": 400}), PermanentError, "400"),
        (event({"type": "error", "message": "It broke."}), PermanentError, "error"),
        (event("It broke.", name="error"), PermanentError, "provider_error"),
        (chunk(error={"message": "It broke.", "code": 502}), TransientError, "502"),
        (error_event("rate_limit_exceeded", "It broke."), TransientError, "rate_limit_exceeded"),
        (error_event("server_error", "It broke."), TransientError, "server_error"),
        (error_event(429, "It broke."), TransientError, "429"),
        (error_event("9" * 5000, "It broke."), PermanentError, "9" * 5000),
        (
            event({"error": {"type": "overloaded_error", "message": "It broke."}}),
            TransientError,
            "overloaded_error",
        ),
        (event("It broke."), PermanentError, "invalid_chunk"),
        (event("[" * 100_000), PermanentError, "invalid_chunk"),
    ],
)
async def test_an_error_in_the_stream_keeps_the_text_and_the_providers_code(stub, step, kind, code):
    stub.reply(delta("one "), delta("two"), step, done())
    items, error = await ask_failing(stub)
    assert items == ["one ", "two"]
    assert (type(error), error.code) == (kind, code)
    assert "It broke." in error.message or code == "invalid_chunk"


@pytest.mark.parametrize(
    ("status", "body", "kind", "code"),
    [
        (400, {"code": "context_length_exceeded"}, PermanentError, "context_length_exceeded"),
        (401, {"code": "invalid_api_key"}, PermanentError, "invalid_api_key"),
        (404, {"code": None}, PermanentError, "http_404"),
        (408, {}, TransientError, "http_408"),
        (409, {}, TransientError, "http_409"),
        (429, {"code": "rate_limit_exceeded"}, TransientError, "rate_limit_exceeded"),
        (429, {"code": "insufficient_quota"}, PermanentError, "insufficient_quota"),
        (500, {"type": "server_error"}, TransientError, "server_error"),
        (503, {}, TransientError, "http_503"),
    ],
)
async def test_a_status_decides_whether_to_try_again(stub, status, body, kind, code):
    content = json.dumps({"error": {"message": "Said so.", **body}}).encode()
    stub.reply(content, status=status, content_type="application/json")
    items, error = await ask_failing(stub)
    assert items == []
    assert (type(error), error.code, error.message) == (kind, code, "Said so.")
    assert len(stub.requests) == 1, "retrying is the worker's business"


async def test_an_error_page_is_an_error_too(stub):
    stub.reply(b"<h1>Bad gateway</h1>", status=502, content_type="text/html")
    _, error = await ask_failing(stub)
    assert (type(error), error.code) == (TransientError, "http_502")


@pytest.mark.parametrize("content_type", ["text/html", "application/json"])
async def test_an_answer_that_is_no_stream_points_to_the_base_url(stub, content_type):
    stub.reply(b'{"message": "welcome"}', content_type=content_type)
    _, error = await ask_failing(stub)
    assert (type(error), error.code) == (PermanentError, "not_a_stream")
    assert error.message.startswith(stub.base_url.removesuffix("/v1"))


async def test_a_server_that_is_not_there_is_transient():
    with create_server(("127.0.0.1", 0)) as unused:
        base_url = f"http://user:pass@127.0.0.1:{unused.getsockname()[1]}/v1"
    with pytest.raises(TransientError, match="cannot be reached") as caught:
        await anext(OpenAIAgent(base_url=base_url, model="m").respond(turn()))
    assert caught.value.code == "connection_error"
    assert "pass" not in caught.value.message


async def test_a_server_that_never_answers_is_transient(stub, monkeypatch):
    monkeypatch.setattr("runs.agents.openai.READ_TIMEOUT", 0.05)
    stub.default = None
    with create_server(("127.0.0.1", 0)) as mute:
        agent = OpenAIAgent(base_url=f"http://127.0.0.1:{mute.getsockname()[1]}/v1", model="m")
        with pytest.raises(TransientError, match="did not answer in time") as caught:
            await anext(agent.respond(turn()))
    assert caught.value.code == "timeout"


async def test_cancelling_in_mid_answer_closes_the_connection_within_two_seconds(stub):
    stub.reply(delta("x"), silence())
    got_text = asyncio.Event()

    async def listen():
        async for _ in agent_of(stub).respond(turn()):
            got_text.set()

    task = asyncio.create_task(listen())
    await asyncio.wait_for(got_text.wait(), 5)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert task.cancelled()
    await until(stub.requests[0].disconnected.is_set, "the disconnect", timeout=2)


async def test_closing_between_two_fragments_closes_the_connection_within_two_seconds(stub):
    stub.reply(delta("x"), delta("y"), silence())
    items = agent_of(stub).respond(turn())
    assert await anext(items) == "x"
    await items.aclose()
    await until(stub.requests[0].disconnected.is_set, "the disconnect", timeout=2)


async def test_cancelling_before_the_first_byte_closes_the_connection_within_two_seconds(stub):
    stub.reply(pause(60))
    task = asyncio.create_task(anext(agent_of(stub).respond(turn())))
    await until(lambda: stub.requests, "the request")
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    await until(stub.requests[0].disconnected.is_set, "the disconnect", timeout=2)


async def test_one_agent_answers_several_turns_at_once(stub):
    gate = threading.Event()
    for word in ("a", "b", "c"):
        stub.reply(delta(word), until_set(gate), delta(word), finish(), done())
    agent = agent_of(stub)

    async def listen():
        return text_of([item async for item in agent.respond(turn())])

    tasks = [asyncio.create_task(listen()) for _ in range(3)]
    await until(lambda: len(stub.requests) == 3, "three requests at once")
    gate.set()
    assert sorted(await asyncio.gather(*tasks)) == ["aa", "bb", "cc"]
