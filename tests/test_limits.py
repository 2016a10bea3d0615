"""What one owner may ask for, and how large a request may be."""

from __future__ import annotations

import asyncio
import json

import pytest
from django.core.cache import cache
from django.test import Client

from runs import services
from runs.errors import TooManyRuns
from runs.models import Conversation, Run
from runs.states import Status
from tests.fakes import run_in
from tests.test_api import messages, post, problem, visitor

__all__ = ["messages", "visitor"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("port", "visitors")]
LARGE = 2_000_000


def test_too_many_messages_within_a_minute_have_to_wait(visitor: Client, messages: str, koda):
    koda(messages_per_minute=2)
    *sent, refused = [post(visitor, messages, {"text": "x"}) for _ in range(3)]
    assert [answer.status_code for answer in sent] == [201, 201]
    assert refused.status_code == 429
    assert problem(refused)["code"] == "too_many_messages"
    assert refused["Retry-After"] == "60"
    assert Run.objects.count() == 2


def test_owners_are_counted_apart(visitor: Client, messages: str, koda):
    koda(messages_per_minute=1)
    statuses = [post(visitor, messages, {"text": "x"}).status_code for _ in range(2)]
    assert statuses == [201, 429]
    other = Client()
    created = other.post("/api/conversations", {}, content_type="application/json").json()
    url = f"/api/conversations/{created['id']}/messages"
    assert post(other, url, {"text": "x"}).status_code == 201


def test_a_cache_that_is_away_lets_messages_through(
    visitor: Client, messages: str, koda, monkeypatch: pytest.MonkeyPatch
):
    def broken(*args, **kwargs):
        raise ConnectionError("no cache")

    koda(messages_per_minute=1)
    monkeypatch.setattr("runs.api.limits.cache.add", broken)
    answers = [post(visitor, messages, {"text": "x", "on_busy": "queue"}) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [201, 201, 201]


def test_a_minute_after_the_first_message_the_count_begins_anew(
    visitor: Client, messages: str, koda, monkeypatch: pytest.MonkeyPatch
):
    timeouts = []
    add = cache.add

    def watched(key, value, *, timeout):
        timeouts.append(timeout)
        return add(key, value, timeout=timeout)

    koda(messages_per_minute=1)
    monkeypatch.setattr("runs.api.limits.cache.add", watched)
    statuses = [post(visitor, messages, {"text": "x"}).status_code for _ in range(2)]
    cache.clear()  # as the expiry does
    statuses.append(post(visitor, messages, {"text": "x"}).status_code)
    assert statuses == [201, 429, 201]
    assert timeouts == [60, 60, 60]


def test_an_owner_has_so_many_open_runs_and_no_more(visitor: Client, messages: str, koda):
    koda(max_active_runs=2)
    statuses = [post(visitor, messages, {"text": "x"}).status_code for _ in range(2)]
    refused = post(visitor, messages, {"text": "x"})
    assert statuses == [201, 201]
    assert refused.status_code == 429
    assert problem(refused)["code"] == "too_many_runs"
    assert int(refused["Retry-After"]) > 0
    replaced = post(visitor, messages, {"text": "x", "on_busy": "interrupt"})
    assert replaced.status_code == 201
    assert Run.objects.open().count() == 1


def test_a_correction_joins_and_a_repetition_is_answered_at_the_limit(conversation: Conversation):
    run = run_in(conversation, Status.STREAMING)
    joined = services.submit(conversation, "more", key="k", max_open=1)
    again = services.submit(conversation, "more", key="k", max_open=1)
    assert joined.merged
    assert again == joined
    assert joined.run == run
    with pytest.raises(TooManyRuns):
        services.submit(conversation, "more", on_busy="queue", max_open=1)
    assert Run.objects.count() == 1


def test_regenerating_counts_like_sending(conversation: Conversation):
    other = Conversation.objects.create(visitor_key=conversation.visitor_key)
    run_in(other, Status.STREAMING)
    run = run_in(conversation, Status.CANCELLED)
    with pytest.raises(TooManyRuns):
        services.regenerate(run.pk, max_open=1)
    Conversation.objects.filter(pk=other.pk).update(visitor_key="somebody else")
    assert services.regenerate(run.pk, max_open=1).replaces == run


def test_django_code_is_not_limited(conversation: Conversation, koda):
    koda(max_active_runs=1, messages_per_minute=1)
    for _ in range(3):
        services.submit(conversation, "x", on_busy="queue")
    assert Run.objects.open().count() == 3


# The size of a request, at a running system's door ---------------------------------------------


async def chunks(total: int, size: int = 65_536):
    yield b'{"text": "'
    for _ in range(total // size):
        yield b"x" * size
    yield b'"}'


@pytest.mark.parametrize("announced", [True, False], ids=["announced", "in chunks"])
async def test_a_body_beyond_the_limit_is_refused_and_the_connection_lives_on(live, announced):
    async with live.visitor() as someone:
        path = f"/api/conversations/{await someone.conversation('words')}/messages"
        content = json.dumps({"text": "x" * LARGE}).encode() if announced else chunks(LARGE)
        headers = {"Content-Type": "application/json"}
        refused = await someone.http.post(path, content=content, headers=headers)
        assert (refused.status_code, refused.json()["code"]) == (413, "too_large")
        assert refused.headers["Content-Type"] == "application/problem+json"
        small = await someone.http.post(path, content=chunks(0), headers=headers)
        assert small.json()["code"] == "invalid_text"


async def test_the_rate_holds_against_messages_in_parallel(launch):
    system = launch(KODA_MESSAGES_PER_MINUTE="5")
    async with system.visitor() as someone:
        conversation = await someone.conversation("words")
        path = f"/api/conversations/{conversation}/messages"
        body = {"text": "x", "on_busy": "queue"}
        answers = await asyncio.gather(*(someone.http.post(path, json=body) for _ in range(20)))
        accepted = [answer for answer in answers if answer.status_code == 201]
        assert len(accepted) == 5
        assert all(answer.status_code in {201, 429} for answer in answers)
