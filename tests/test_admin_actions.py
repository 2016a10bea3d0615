"""What operators may do to runs in the admin, and who may not."""

from __future__ import annotations

from uuid import uuid4

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from runs.models import Conversation, Run
from runs.states import TERMINAL, Status
from tests.admin_pages import LIST, OVERVIEW, page_url
from tests.fakes import RecordingPort, assert_sound, finish, run_in


def cancel_url(run: Run) -> str:
    return reverse("admin:koda_runs_run_cancel", args=[run.pk])


def member(client: Client, *permissions: str) -> Client:
    user = User.objects.create_user("member", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    client.force_login(user)
    return client


def regenerate_url(run: Run) -> str:
    return reverse("admin:koda_runs_run_regenerate", args=[run.pk])


@pytest.fixture
def looker(client: Client, db: None) -> Client:
    """Somebody who may look and nothing else."""
    return member(client, "view_run")


@pytest.fixture
def operator(client: Client, db: None) -> Client:
    return member(client, "view_run", "operate_run")


def said(answer: object) -> list[str]:
    return [str(message) for message in answer.context["messages"]]


def choose(client: Client, action: str, *runs: Run):
    form = {"action": action, "_selected_action": [str(run.pk) for run in runs]}
    return client.post(LIST, form, follow=True)


@pytest.mark.parametrize("status", [Status.PENDING, Status.RUNNING, Status.STREAMING])
def test_an_open_run_is_cancelled_from_its_page_and_watchers_hear_of_it(
    operator: Client,
    conversation: Conversation,
    status: Status,
    port: RecordingPort,
    django_capture_on_commit_callbacks,
):
    run = run_in(conversation, status)
    assert cancel_url(run) in operator.get(page_url(run)).content.decode()
    with django_capture_on_commit_callbacks(execute=True):
        answer = operator.post(cancel_url(run), follow=True)
    assert said(answer) == ["The run is cancelled."]
    run.refresh_from_db()
    assert (run.status, run.finish_reason) == (Status.CANCELLED, "operator")
    assert_sound(run)
    assert port.published[-1][0] == run.pk
    assert port.nudges == 1
    assert LogEntry.objects.get().object_id == str(run.pk)


@pytest.mark.parametrize("status", TERMINAL)
def test_a_finished_run_stays_as_it_is(
    operator: Client, conversation: Conversation, status: Status
):
    run = run_in(conversation, status)
    assert cancel_url(run) not in operator.get(page_url(run)).content.decode()
    assert said(operator.post(cancel_url(run), follow=True)) == [f"The run was {status} already."]
    assert not LogEntry.objects.exists()
    run.refresh_from_db()
    assert run.status == status
    assert_sound(run)


def test_a_run_that_is_gone_is_refused_with_a_sentence(operator: Client):
    gone = Run(pk=uuid4())
    answer = operator.post(cancel_url(gone))
    assert answer.status_code == 302
    assert "Refused: no such run." in said(operator.get(LIST))


def test_the_chosen_runs_are_cancelled_and_the_others_are_not(
    operator: Client, conversation: Conversation
):
    left = run_in(conversation, Status.STREAMING)
    others = [Conversation.objects.create(visitor_key="v") for _ in range(3)]
    done = run_in(others[0], Status.DONE)
    chosen = [run_in(others[1], Status.STREAMING), run_in(others[2], Status.PENDING)]

    answer = choose(operator, "cancel_selected", done, *chosen)

    assert said(answer) == ["Runs cancelled: 2."]
    for run, status in [(left, "streaming"), (done, "done")]:
        run.refresh_from_db()
        assert run.status == status
    for run in chosen:
        run.refresh_from_db()
        assert run.finish_reason == "operator"
        assert_sound(run)


def test_one_press_cancels_a_bounded_number_and_says_so(
    operator: Client, conversation: Conversation, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("runs.admin.actions.MOST", 2)
    runs = [run_in(Conversation.objects.create(visitor_key="v"), Status.PENDING) for _ in range(3)]
    answer = operator.post(
        LIST,
        {"action": "cancel_selected", "select_across": "1", "_selected_action": str(runs[0].pk)},
        follow=True,
    )
    assert said(answer) == ["Runs cancelled: 2.", "There are more: do it again."]
    assert Run.objects.filter(status=Status.PENDING).count() == 1


def test_a_run_that_ends_first_is_not_counted_as_cancelled(
    operator: Client, conversation: Conversation, monkeypatch: pytest.MonkeyPatch
):
    run = run_in(conversation, Status.STREAMING)
    cancel = Run.objects.cancel

    def beaten(run_id, *, reason):
        finish(run)
        return cancel(run_id, reason=reason)

    monkeypatch.setattr(Run.objects, "cancel", beaten)
    assert said(choose(operator, "cancel_selected", run)) == ["None of these runs is open."]


@pytest.mark.parametrize("status", sorted(TERMINAL))
def test_the_last_turn_is_answered_anew_from_its_page(
    operator: Client, conversation: Conversation, status: Status
):
    run = run_in(conversation, status)
    assert regenerate_url(run) in operator.get(page_url(run)).content.decode()
    answer = operator.post(regenerate_url(run), follow=True)
    again = Run.objects.get(replaces=run)
    assert answer.redirect_chain == [(page_url(again), 302)]
    assert said(answer) == ["This run answers the turn anew."]
    assert again.status == Status.PENDING
    assert LogEntry.objects.get().object_id == str(run.pk)


def test_only_a_last_turn_that_is_over_is_offered_to_be_answered_anew(
    operator: Client, conversation: Conversation
):
    earlier = run_in(conversation, Status.DONE)
    last = run_in(conversation, Status.STREAMING)
    for run in (earlier, last):
        assert regenerate_url(run) not in operator.get(page_url(run)).content.decode()
        [sentence] = said(operator.post(regenerate_url(run), follow=True))
        assert sentence.startswith("Refused: only the last turn")
    assert Run.objects.count() == 2


def test_of_the_chosen_runs_the_last_turns_are_answered_anew(
    operator: Client, conversation: Conversation
):
    earlier, last = [run_in(conversation, Status.DONE) for _ in range(2)]
    other = run_in(Conversation.objects.create(visitor_key="v"), Status.STREAMING)
    answer = choose(operator, "regenerate_selected", earlier, last, other)
    assert said(answer) == ["Runs answered anew: 1."]
    assert Run.objects.get(replaces__isnull=False).replaces == last
    assert said(choose(operator, "regenerate_selected", earlier, other)) == [
        "None of these runs is a last turn that is over."
    ]


# Who may not


def test_who_may_only_look_sees_no_button_and_is_refused(
    looker: Client, conversation: Conversation
):
    run = run_in(conversation, Status.STREAMING)
    for url in (LIST, page_url(run), OVERVIEW):
        page = looker.get(url).content.decode()
        assert "_selected" not in page
        assert cancel_url(run) not in page
    assert looker.post(cancel_url(run)).status_code == 403
    assert looker.post(regenerate_url(run)).status_code == 403
    choose(looker, "cancel_selected", run)
    run.refresh_from_db()
    assert run.status == Status.STREAMING


def test_who_may_operate_but_not_look_is_refused(client: Client, conversation: Conversation):
    run = run_in(conversation, Status.STREAMING)
    stranger = member(client, "operate_run")
    assert stranger.post(cancel_url(run)).status_code == 403
    assert stranger.get(OVERVIEW).status_code == 403
    assert choose(stranger, "cancel_selected", run).status_code == 403
    run.refresh_from_db()
    assert run.status == Status.STREAMING


def test_a_get_or_a_foreign_form_cancels_nothing(admin_user: User, conversation: Conversation):
    run = run_in(conversation, Status.STREAMING)
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(admin_user)
    assert strict.get(cancel_url(run)).status_code == 405
    assert strict.post(cancel_url(run)).status_code == 403
    assert choose(strict, "cancel_selected", run).status_code == 403
    run.refresh_from_db()
    assert run.status == Status.STREAMING


def test_a_stranger_is_sent_to_the_login(client: Client, conversation: Conversation):
    run = run_in(conversation, Status.STREAMING)
    assert client.post(cancel_url(run)).status_code == 302
    run.refresh_from_db()
    assert run.status == Status.STREAMING
