"""The API's schema: every operation, what it takes, what it answers, and how it refuses."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from runs.models import Conversation, Message
from runs.states import Status
from tests.fakes import finish, pending_run, run_in
from tests.test_api import messages, post, problem, visitor

__all__ = ["messages", "visitor"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("port", "visitors")]


@pytest.fixture
def schema(client: Client) -> dict:
    return client.get("/api/openapi.json").json()


def operations(schema: dict) -> dict[str, dict]:
    return {
        f"{method.upper()} {path}": operation
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
    }


def test_every_call_is_described_the_stream_included(schema: dict):
    assert set(operations(schema)) == {
        "POST /api/conversations",
        "GET /api/conversations",
        "GET /api/conversations/{conversation_id}",
        "PATCH /api/conversations/{conversation_id}",
        "DELETE /api/conversations/{conversation_id}",
        "POST /api/conversations/{conversation_id}/messages",
        "GET /api/runs/{run_id}",
        "GET /api/runs/{run_id}/stream",
        "GET /api/runs/{run_id}/events",
        "POST /api/runs/{run_id}/cancel",
        "POST /api/runs/{run_id}/regenerate",
        "GET /api/agents",
    }
    for name, operation in operations(schema).items():
        assert operation["tags"], name
        assert operation.get("description"), name
        assert {"BearerToken"} <= {way for ways in operation["security"] for way in ways}


def test_every_answer_has_a_type_and_every_refusal_is_a_problem(schema: dict):
    for name, operation in operations(schema).items():
        assert "401" in operation["responses"], name
        for status, response in operation["responses"].items():
            if status == "204":
                continue
            [(content_type, content)] = response["content"].items()
            if int(status) >= 400:
                assert content_type == "application/problem+json"
                assert content["schema"]["$ref"].endswith("/Problem"), (name, status)
            elif content_type == "application/json":
                assert "$ref" in content["schema"], (name, status)


def test_every_reference_leads_somewhere(schema: dict):
    parts = schema["components"]["schemas"]

    def references(node: object):
        if isinstance(node, dict):
            if "$ref" in node:
                yield node["$ref"]
            for value in node.values():
                yield from references(value)
        elif isinstance(node, list):
            for value in node:
                yield from references(value)

    found = set(references(schema))
    assert found
    assert {reference.rsplit("/", 1)[1] for reference in found} <= set(parts)


def test_the_two_ways_to_authenticate_are_described(schema: dict):
    ways = schema["components"]["securitySchemes"]
    assert ways["BearerToken"]["scheme"] == "bearer"
    assert (ways["SessionOrVisitor"]["in"], ways["SessionOrVisitor"]["name"]) == (
        "cookie",
        "sessionid",
    )


# Refusals that the framework makes ----------------------------------------------------------


@pytest.mark.parametrize(
    "content_type",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""],
)
def test_a_body_that_is_not_announced_as_json_is_refused(
    visitor: Client, messages: str, content_type: str
):
    refused = visitor.post(messages, b'{"text": "x"}', content_type=content_type)
    assert refused.status_code == 415
    assert problem(refused)["code"] == "unsupported_media_type"


def test_json_with_a_charset_is_json(visitor: Client, messages: str):
    sent = visitor.post(messages, '{"text": "x"}', content_type="application/json; charset=utf-8")
    assert sent.status_code == 201


@pytest.mark.parametrize("path", ["/api/agents", "/api/runs/{}/stream", "/api/runs/{}/cancel"])
def test_a_wrong_method_is_told_apart_from_a_missing_csrf_token(path: str):
    nobody = Client(enforce_csrf_checks=True)
    refused = nobody.put(path.format("00000000-0000-7000-8000-000000000000"))
    assert problem(refused)["code"] == "method_not_allowed"
    assert refused["Allow"]


def test_what_breaks_on_our_side_is_a_problem_and_says_nothing_more(
    visitor: Client, messages: str, monkeypatch: pytest.MonkeyPatch
):
    def broken(*args, **kwargs):
        raise RuntimeError("hunter2")

    monkeypatch.setattr("runs.services.submit", broken)
    visitor.raise_request_exception = False
    failed = post(visitor, messages, {"text": "x"})
    assert failed.status_code == 500
    assert problem(failed)["code"] == "internal"
    assert "hunter2" not in failed.content.decode()


# What a call costs --------------------------------------------------------------------------


def queries(client: Client, path: str) -> int:
    with CaptureQueriesContext(
        connection,
    ) as captured:
        assert client.get(path).status_code == 200
    return len(captured)


def test_lists_cost_the_same_number_of_queries_however_long_they_are(
    visitor: Client, messages: str
):
    url = messages.removesuffix("/messages")
    conversation = Conversation.objects.get()
    finish(run_in(conversation, Status.STREAMING))
    few = queries(visitor, url), queries(visitor, "/api/conversations")
    for _ in range(10):
        finish(run_in(conversation, Status.STREAMING))
        Conversation.objects.create(visitor_key=conversation.visitor_key)
    assert (queries(visitor, url), queries(visitor, "/api/conversations")) == few
    assert max(few) <= 8


def test_a_long_conversation_comes_in_parts(visitor: Client, messages: str, monkeypatch):
    monkeypatch.setattr("runs.api.conversations.MAX_TURNS", 2)
    url = messages.removesuffix("/messages")
    conversation = Conversation.objects.get()
    for _ in range(5):
        pending_run(conversation)
    parts, before = [], {}
    while True:
        page = visitor.get(url, before).json()
        parts.append([turn["turn"] for turn in page["turns"]])
        assert page["open_run"]["turn"] == 1
        if page["earlier"] is None:
            break
        before = {"before": page["earlier"]}
    assert parts == [[4, 5], [2, 3], [1]]


def test_a_log_comes_in_pages(visitor: Client, messages: str):
    run = run_in(Conversation.objects.get(), Status.STREAMING)
    finish(run)
    path = f"/api/runs/{run.pk}/events"
    seqs, after = [], -1
    while after is not None:
        page = visitor.get(path, {"after": after, "limit": 1}).json()
        seqs += [event["seq"] for event in page["events"]]
        after = page["next"]
    assert seqs == list(range(Message.objects.filter(run_id=run.pk).count()))
