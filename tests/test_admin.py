"""The admin shows runs and changes nothing."""

import pytest
from django.test import Client
from django.urls import reverse

from runs import events
from runs.models import Conversation
from runs.states import Status
from tests.fakes import run_in, write


@pytest.fixture
def admin(admin_client: Client) -> Client:
    return admin_client


def test_runs_are_listed_with_their_status(admin: Client, conversation: Conversation):
    run = run_in(conversation, Status.STREAMING)
    page = admin.get(reverse("admin:koda_runs_run_changelist")).content.decode()
    assert str(run.pk) in page
    assert "streaming" in page


def test_a_run_is_shown_read_only_and_hostile_text_stays_text(
    admin: Client, conversation: Conversation
):
    run = run_in(conversation, Status.STREAMING)
    write(run, events.delta("<script>alert(1)</script>"))
    type(run).objects.cancel(run.pk, reason="user")

    url = reverse("admin:koda_runs_run_change", args=[run.pk])
    page = admin.get(url).content.decode()

    assert "&lt;script&gt;alert(1)" in page
    assert "<script>alert(1)" not in page
    assert 'name="_save"' not in page
    assert admin.post(url, {"status": "done"}).status_code == 403
    run.refresh_from_db()
    assert run.status == Status.CANCELLED


def test_nothing_can_be_added_or_deleted(admin: Client, conversation: Conversation):
    run = run_in(conversation, Status.DONE)
    assert admin.get(reverse("admin:koda_runs_run_add")).status_code == 403
    assert admin.get(reverse("admin:koda_runs_run_delete", args=[run.pk])).status_code == 403


def test_the_admin_asks_who_you_are(client: Client, db: None):
    assert client.get(reverse("admin:koda_runs_run_changelist")).status_code == 302
