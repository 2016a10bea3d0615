"""API tokens: what they open, what they do not, and that nobody can read them back."""

from __future__ import annotations

import io
import logging
from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.db.models.functions import Now
from django.test import Client
from django.urls import reverse

from runs import tokens
from runs.models import ApiToken, Conversation, Run

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("port")]


@pytest.fixture
def user():
    return get_user_model().objects.create_user("ada")


def bearer(key: str) -> Client:
    return Client(enforce_csrf_checks=True, headers={"Authorization": f"Bearer {key}"})


def create(client: Client):
    return client.post("/api/conversations", {}, content_type="application/json")


def test_a_token_acts_for_its_user_without_cookies_or_csrf(user):
    client = bearer(tokens.issue(user))
    assert create(client).status_code == 201
    assert Conversation.objects.get().owner == user
    assert len(client.get("/api/conversations").json()["conversations"]) == 1


def test_only_the_hash_is_kept(user):
    key = tokens.issue(user, name="ci")
    stored = str(ApiToken.objects.values().get())
    assert key not in stored
    assert key.removeprefix(tokens.PREFIX) not in stored


@pytest.mark.parametrize("key", ["", "nonsense", "koda_nonsense", "\u2603", "a b"])
def test_a_wrong_token_is_refused_and_never_falls_through_to_the_session(user, key: str):
    client = bearer(key)
    client.force_login(user)
    for path in ("/api/conversations", f"/api/runs/{'0' * 8}-0000-7000-8000-{'0' * 12}/stream"):
        refused = client.get(path)
        assert refused.status_code == 401
        assert refused.json()["code"] == "not_signed_in"
        assert refused["WWW-Authenticate"] == "Bearer"
    assert create(client).status_code == 401
    assert not Conversation.objects.exists()


def test_an_expired_token_is_refused(user):
    alive = tokens.issue(user, expires_at=Now() + timedelta(minutes=1))
    dead = tokens.issue(user, expires_at=Now() - timedelta(seconds=1))
    assert bearer(alive).get("/api/conversations").status_code == 200
    assert bearer(dead).get("/api/conversations").status_code == 401


def test_a_user_who_may_not_sign_in_has_no_valid_token(user):
    key = tokens.issue(user)
    user.is_active = False
    user.save()
    assert bearer(key).get("/api/conversations").status_code == 401


def test_a_revoked_token_is_refused(user):
    key = tokens.issue(user)
    ApiToken.objects.all().delete()
    assert bearer(key).get("/api/conversations").status_code == 401


def test_a_read_only_token_reads_and_does_not_write(user):
    client = bearer(tokens.issue(user, can_write=False))
    assert client.get("/api/conversations").status_code == 200
    refused = create(client)
    assert (refused.status_code, refused.json()["code"]) == (403, "read_only_token")
    assert not Conversation.objects.exists()


def test_a_token_sees_its_users_runs_only(user):
    mine = bearer(tokens.issue(user))
    theirs = bearer(tokens.issue(get_user_model().objects.create_user("bob")))
    conversation = create(mine).json()["id"]
    url = f"/api/conversations/{conversation}/messages"
    asked = mine.post(url, {"text": "hello"}, content_type="application/json").json()
    for path in (f"/api/runs/{asked['run']['id']}", asked["stream_url"], url[:-9]):
        assert theirs.get(path).status_code == 404
    assert mine.get(f"/api/runs/{asked['run']['id']}").status_code == 200
    assert Run.objects.count() == 1


def test_the_last_use_is_noted_at_most_once_a_minute(user, django_assert_num_queries):
    key = tokens.issue(user)
    assert ApiToken.objects.get().last_used_at is None
    tokens.find(key)
    used = ApiToken.objects.get().last_used_at
    assert used is not None
    with django_assert_num_queries(1):
        tokens.find(key)
    assert ApiToken.objects.get().last_used_at == used
    ApiToken.objects.update(last_used_at=Now() - timedelta(minutes=2))
    tokens.find(key)
    assert ApiToken.objects.get().last_used_at > used - timedelta(minutes=1)


def test_no_key_is_logged(user, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    key = tokens.issue(user)
    client = bearer(key)
    create(client)
    client.get("/api/nowhere")
    bearer(key + "x").get("/api/conversations")
    assert key not in caplog.text


def run_command(*arguments: str) -> str:
    out = io.StringIO()
    call_command("create_token", *arguments, stdout=out)
    return out.getvalue()


def test_the_command_prints_the_key_alone_on_one_line(user):
    printed = run_command("ada", "--name", "ci")
    assert printed.count("\n") == 1
    assert bearer(printed.strip()).get("/api/conversations").status_code == 200


def test_the_command_makes_a_user_only_when_told_to():
    with pytest.raises(CommandError, match="--create-user"):
        run_command("eve")
    key = run_command("eve", "--create-user", "--read-only", "--days", "7").strip()
    token = ApiToken.objects.get()
    assert (token.user.get_username(), token.can_write) == ("eve", False)
    assert not token.user.has_usable_password()
    assert token.expires_at is not None
    assert create(bearer(key)).status_code == 403


def test_the_admin_shows_a_new_key_once(admin_client: Client, user):
    url = reverse("admin:koda_runs_apitoken_add")
    page = admin_client.post(url, {"user": user.pk, "name": "ci", "can_write": "on"}, follow=True)
    told = page.content.decode()
    key = told.split("The key is ")[1].split(" ")[0]
    assert bearer(key).get("/api/conversations").status_code == 200
    later = admin_client.get(reverse("admin:koda_runs_apitoken_changelist")).content.decode()
    assert key not in later
    change = reverse("admin:koda_runs_apitoken_change", args=[ApiToken.objects.get().pk])
    assert key not in admin_client.get(change).content.decode()
