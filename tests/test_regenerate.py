"""Answering the last turn anew."""

from __future__ import annotations

import pytest
from django.test import Client

from runs import services
from runs.errors import InvalidText, NotFound, NotRegenerable
from runs.history import history_before
from runs.models import Conversation, Run
from runs.states import TERMINAL, Status
from tests.fakes import RecordingPort, finish, run_in

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("port", "visitors")]


def texts(run: Run) -> list[str]:
    return list(run.inputs.values_list("text", flat=True))


@pytest.mark.parametrize("status", sorted(TERMINAL))
def test_a_finished_last_turn_is_answered_anew_in_its_place(
    conversation: Conversation,
    port: RecordingPort,
    status: Status,
    django_capture_on_commit_callbacks,
):
    run = run_in(conversation, status)
    with django_capture_on_commit_callbacks(execute=True):
        again = services.regenerate(run.pk)
    assert (again.status, again.turn, again.replaces) == ("pending", run.turn + 1, run)
    assert texts(again) == texts(run) == ["hello"]
    assert again.input_count == 1
    assert port.nudges == 1


def test_edited_inputs_take_the_place_of_the_old_ones(conversation: Conversation):
    run = run_in(conversation, Status.DONE)
    again = services.regenerate(run.pk, inputs=["hi", "there\0"])
    assert texts(again) == ["hi", "there\ufffd"]
    assert texts(run) == ["hello"]
    assert again.input_count == 2


@pytest.mark.parametrize("status", [Status.PENDING, Status.RUNNING, Status.STREAMING])
def test_a_turn_that_is_not_over_cannot_be(conversation: Conversation, status: Status):
    with pytest.raises(NotRegenerable):
        services.regenerate(run_in(conversation, status).pk)
    assert Run.objects.count() == 1


def test_only_the_last_turn_can_be(conversation: Conversation):
    first = run_in(conversation, Status.DONE)
    run_in(conversation, Status.DONE)
    with pytest.raises(NotRegenerable):
        services.regenerate(first.pk)
    assert Run.objects.count() == 2


@pytest.mark.parametrize("inputs", [[], [""], ["fine", "  "], ["x" * 20_001]])
def test_inputs_that_cannot_be_answered_are_refused_whole(
    conversation: Conversation, inputs: list[str]
):
    run = run_in(conversation, Status.DONE)
    with pytest.raises(InvalidText):
        services.regenerate(run.pk, inputs=inputs)
    assert Run.objects.count() == 1


def test_what_is_not_there_is_not_found(conversation: Conversation):
    with pytest.raises(NotFound):
        services.regenerate(conversation.pk)


def test_the_agent_is_told_the_newest_answer_only(conversation: Conversation):
    first = run_in(conversation, Status.DONE)
    again = services.regenerate(first.pk, inputs=["better"])
    assert history_before(again) == []
    Run.objects.claim(worker="w1", lease=services.conf.get().lease_delta)
    finish(again)
    following = services.submit(conversation, "next").run
    assert [message["content"] for message in history_before(following)] == [
        "better",
        "all of it",
    ]


def test_over_http_the_new_run_stands_where_the_old_one_stood(client: Client):
    client.get("/")
    made = client.post("/api/conversations", {}, content_type="application/json").json()
    url = f"/api/conversations/{made['id']}"
    asked = client.post(f"{url}/messages", {"text": "one"}, content_type="application/json")
    run_id = asked.json()["run"]["id"]
    refused = client.generic("POST", f"/api/runs/{run_id}/regenerate")
    assert (refused.status_code, refused.json()["code"]) == (409, "not_regenerable")
    client.post(f"/api/runs/{run_id}/cancel")

    again = client.post(
        f"/api/runs/{run_id}/regenerate", {"inputs": ["two"]}, content_type="application/json"
    )

    assert again.status_code == 201
    turns = client.get(url).json()["turns"]
    assert [turn["run_id"] for turn in turns] == [again.json()["run"]["id"]]
    assert [given["text"] for given in turns[0]["inputs"]] == ["two"]
    assert client.generic("POST", f"/api/runs/{run_id}/regenerate").status_code == 409
    assert Client().generic("POST", f"/api/runs/{run_id}/regenerate").status_code == 404
