"""API tokens in the admin: to be seen and revoked; their keys are nowhere."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from runs.models import ApiToken

LIST = reverse("admin:koda_runs_apitoken_changelist")


def token(user: User, name: str) -> ApiToken:
    return ApiToken.objects.create(user=user, name=name, hash=f"hash of {name}")


@pytest.fixture
def owner(db: None) -> User:
    return User.objects.create_user("program")


def test_tokens_are_listed_with_their_owner_and_without_their_hash(
    admin_client: Client, owner: User
):
    made = token(owner, "deploy")
    page = admin_client.get(LIST).content.decode()
    assert "deploy" in page
    assert "program" in page
    url = reverse("admin:koda_runs_apitoken_change", args=[made.pk])
    assert "hash of" not in page + admin_client.get(url).content.decode()


def test_tokens_are_found_by_name_or_owner(admin_client: Client, owner: User, admin_user: User):
    token(owner, "deploy")
    token(admin_user, "nightly")
    for words, there, not_there in (("night", "nightly", "deploy"), ("prog", "deploy", "nightly")):
        page = admin_client.get(LIST, {"q": words}).content.decode()
        assert there in page
        assert not_there not in page


def test_a_longer_list_asks_no_more_questions(admin_client: Client, owner: User):
    token(owner, "first")
    with CaptureQueriesContext(connection) as short:
        admin_client.get(LIST)
    for number in range(5):
        token(User.objects.create_user(f"user{number}"), f"token{number}")
    with CaptureQueriesContext(connection) as long:
        admin_client.get(LIST)
    assert len(long) == len(short)


def test_a_token_is_revoked_but_never_changed(admin_client: Client, owner: User):
    made = token(owner, "deploy")
    url = reverse("admin:koda_runs_apitoken_change", args=[made.pk])
    assert admin_client.post(url, {"can_write": "on", "name": "other"}).status_code == 403
    delete = reverse("admin:koda_runs_apitoken_delete", args=[made.pk])
    assert admin_client.post(delete, {"post": "yes"}).status_code == 302
    assert not ApiToken.objects.exists()
