"""The API's errors, whoever makes them: one form, and nothing half-written."""

import json

import pytest
from django.db import transaction
from django.test import Client

from runs import services
from runs.models import Conversation, Run, RunInput
from tests.fakes import RecordingPort

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("port", "visitors")]
MISSING = "00000000-0000-7000-8000-000000000000"


@pytest.fixture
def visitor() -> Client:
    client = Client(enforce_csrf_checks=True)
    client.get("/")
    client.defaults["HTTP_X_CSRFTOKEN"] = client.cookies["csrftoken"].value
    return client


@pytest.fixture
def messages(visitor: Client) -> str:
    created = visitor.post("/api/conversations", {}, content_type="application/json")
    assert created.status_code == 201
    return f"/api/conversations/{created.json()['id']}/messages"


def problem(response) -> dict:
    assert response["Content-Type"] == "application/problem+json"
    body = response.json()
    assert body["status"] == response.status_code
    assert set(body) >= {"type", "title", "status", "detail", "code"}
    return body


def post(client: Client, url: str, body: object, **headers: str):
    raw = body if isinstance(body, str | bytes) else json.dumps(body)
    return client.post(url, raw, content_type="application/json", headers=headers)


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({"text": ""}, 422, "text"),
        ({"text": "  \n "}, 422, "text"),
        ({"text": "x" * 20_001}, 422, "text"),
        ({"text": 5}, 422, "text"),
        ({"text": None}, 422, "text"),
        ({}, 422, "text"),
        ({"text": "x", "on_busy": "explode"}, 422, "on_busy"),
        ({"text": "x", "agent": "nobody"}, 422, "agent"),
        ({"text": "x", "metadata": [1]}, 422, "metadata"),
        ("{", 400, None),
        ("", 422, None),
        (b"\xff\xfe", 400, None),
        ("[]", 422, None),
    ],
)
def test_a_bad_message_is_refused_with_the_fields_name_and_nothing_is_written(
    visitor: Client, messages: str, body: object, status: int, field: str | None
):
    refused = post(visitor, messages, body)
    assert refused.status_code == status
    told = problem(refused)
    if field is not None:
        assert told["errors"][0]["field"] == field
    assert not Run.objects.exists()
    assert not RunInput.objects.exists()


@pytest.mark.parametrize(
    "path",
    [
        f"/api/runs/{MISSING}",
        f"/api/runs/{MISSING}/events",
        f"/api/runs/{MISSING}/stream",
        f"/api/conversations/{MISSING}",
        "/api/runs/not-an-id",
        "/api/nowhere",
    ],
)
def test_what_is_not_there_is_a_404_in_json(visitor: Client, path: str):
    assert problem(visitor.get(path))["code"] == "not_found"


def test_a_foreign_run_looks_like_a_missing_one(visitor: Client, messages: str):
    run = post(visitor, messages, {"text": "mine"}).json()["run"]
    stranger = Client()
    stranger.get("/")
    for path in (f"/api/runs/{run['id']}", f"/api/runs/{run['id']}/stream"):
        foreign = stranger.get(path)
        missing = stranger.get(path.replace(run["id"], MISSING))
        assert foreign.status_code == 404
        assert foreign.content == missing.content


def test_a_wrong_method_says_which_ones_are_right(visitor: Client):
    refused = visitor.delete(f"/api/runs/{MISSING}/cancel")
    assert refused.status_code == 405
    assert problem(refused)["code"] == "method_not_allowed"


def test_a_post_without_the_csrf_token_is_refused(visitor: Client, messages: str):
    del visitor.defaults["HTTP_X_CSRFTOKEN"]
    refused = post(visitor, messages, {"text": "x"})
    assert refused.status_code == 403
    assert problem(refused)["code"] == "csrf_failed"
    assert not Run.objects.exists()


def test_visitors_can_be_kept_out(visitor: Client, settings, messages: str):
    settings.KODA = settings.KODA.model_copy(update={"allow_anonymous": False})
    for answer in (
        post(visitor, messages, {"text": "x"}),
        visitor.get("/api/conversations"),
        visitor.get(f"/api/runs/{MISSING}/stream"),
    ):
        assert answer.status_code == 401
        assert problem(answer)["code"] == "not_signed_in"


def test_nul_in_a_message_or_a_search_is_no_error(visitor: Client, messages: str):
    sent = post(visitor, messages, {"text": "a\0b"})
    assert sent.status_code == 201
    assert sent.json()["run"]["inputs"][0]["text"] == "a\ufffdb"
    assert visitor.get("/api/conversations", {"q": "a\0b"}).status_code == 200


def test_a_key_with_another_body_is_refused(visitor: Client, messages: str):
    first = post(visitor, messages, {"text": "one"}, **{"Idempotency-Key": "k"})
    again = post(visitor, messages, {"text": "one"}, **{"Idempotency-Key": "k"})
    other = post(visitor, messages, {"text": "two"}, **{"Idempotency-Key": "k"})
    assert (first.status_code, again.status_code, other.status_code) == (201, 201, 422)
    assert first.json() == again.json()
    assert problem(other)["code"] == "idempotency_key_reused"


def test_rejecting_while_a_run_is_open_is_a_conflict(visitor: Client, messages: str):
    post(visitor, messages, {"text": "one"})
    refused = post(visitor, messages, {"text": "two", "on_busy": "reject"})
    assert refused.status_code == 409
    assert problem(refused)["code"] == "conversation_busy"


def test_conversations_are_listed_searched_renamed_and_deleted(visitor: Client, messages: str):
    post(visitor, messages, {"text": "Where is my kettle?"})
    url = messages.removesuffix("/messages")
    assert visitor.get(url).json()["title"] == "Where is my kettle?"
    patched = visitor.patch(url, {"title": "Tea"}, content_type="application/json")
    assert patched.json()["title"] == "Tea"
    titles = [
        [c["title"] for c in visitor.get("/api/conversations", {"q": q}).json()["conversations"]]
        for q in ("", "tea", "KETTLE", "coffee")
    ]
    assert titles == [["Tea"], ["Tea"], ["Tea"], []]
    assert visitor.delete(url).status_code == 204
    assert visitor.get(url).status_code == 404


def test_conversations_are_paged_newest_first(visitor: Client):
    ids = [
        visitor.post("/api/conversations", {}, content_type="application/json").json()["id"]
        for _ in range(53)
    ]
    first = visitor.get("/api/conversations").json()
    second = visitor.get("/api/conversations", {"cursor": first["next"]}).json()
    got = [c["id"] for page in (first, second) for c in page["conversations"]]
    assert got == ids[::-1]
    assert second["next"] is None


def test_the_open_run_is_the_active_one_else_the_oldest_pending(visitor: Client, messages: str):
    url = messages.removesuffix("/messages")
    assert visitor.get(url).json()["open_run"] is None
    first = post(visitor, messages, {"text": "one"}).json()["run"]["id"]
    post(visitor, messages, {"text": "two"})
    conversation = visitor.get(url).json()
    assert conversation["open_run"]["id"] == first
    assert conversation["merge_window_ms"] == 30_000
    assert [turn["inputs"][0]["text"] for turn in conversation["turns"]] == ["one", "two"]


def test_a_rolled_back_request_makes_no_run_and_no_nudge(
    conversation: Conversation, port: RecordingPort
):
    def request() -> None:
        services.submit(conversation, "never")
        raise RuntimeError

    with pytest.raises(RuntimeError), transaction.atomic():
        request()
    assert not Run.objects.exists()
    assert port.nudges == 0


def test_a_visitors_key_does_not_change_between_requests_and_is_not_the_session(
    visitor: Client,
):
    for _ in range(2):
        visitor.post("/api/conversations", {}, content_type="application/json")
    keys = set(Conversation.objects.values_list("visitor_key", flat=True))
    assert len(keys) == 1
    assert visitor.cookies["sessionid"].value not in keys


def test_a_forged_session_cookie_owns_nothing(visitor: Client, messages: str):
    forger = Client()
    forger.cookies["sessionid"] = "x" * 32
    assert forger.get(messages.removesuffix("/messages")).status_code == 404
    assert forger.get("/api/conversations").json()["conversations"] == []
