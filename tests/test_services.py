"""What a message becomes: merged, queued, put in the place of another, or refused."""

import pytest

from runs import marks, services
from runs.errors import ConversationBusy, InvalidText, KeyReused, NotFound, UnknownAgent
from runs.models import Conversation, Message, Run, RunInput
from runs.states import Status
from tests.fakes import RecordingPort, assert_sound, log, run_in

pytestmark = pytest.mark.usefixtures("port")


def texts(run: Run) -> list[str]:
    return list(run.inputs.values_list("text", flat=True))


def test_the_first_message_makes_a_run_and_names_the_conversation(
    conversation: Conversation, port: RecordingPort, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        submitted = services.submit(conversation, "  Where is\nmy order?  ")

    assert (submitted.merged, submitted.position, submitted.run.turn) == (False, 0, 1)
    assert submitted.run.status == Status.PENDING
    assert submitted.run.created_at is not None
    conversation.refresh_from_db()
    assert conversation.title == "Where is my order?"
    assert port.nudges == 1


def test_a_correction_joins_the_run_and_leaves_the_mark(
    conversation: Conversation, django_capture_on_commit_callbacks
):
    run = run_in(conversation, Status.STREAMING)

    with django_capture_on_commit_callbacks(execute=True):
        submitted = services.submit(conversation, "exchange it instead")

    assert (submitted.merged, submitted.position, submitted.run) == (True, 1, run)
    assert submitted.run.input_count == 2
    assert texts(run) == ["hello", "exchange it instead"]
    assert marks.read_marks([run.pk]) == {run.pk: 2}
    assert Run.objects.count() == 1


def test_a_mark_that_cannot_be_set_does_not_fail_the_message(
    conversation: Conversation,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    django_capture_on_commit_callbacks,
):
    run_in(conversation, Status.STREAMING)

    def broken(*args, **kwargs):
        raise ConnectionError("no cache")

    monkeypatch.setattr("runs.marks.cache.set", broken)
    with django_capture_on_commit_callbacks(execute=True):
        assert services.submit(conversation, "more").merged
    assert "rerun mark" in caplog.text


@pytest.mark.parametrize("status", [Status.PENDING, Status.STREAMING])
def test_queue_always_makes_a_new_run(conversation: Conversation, status: Status):
    run_in(conversation, status)
    submitted = services.submit(conversation, "next", on_busy="queue")
    assert (submitted.merged, submitted.run.turn) == (False, 2)


def test_interrupt_cancels_what_is_open_and_starts_anew(
    conversation: Conversation, port: RecordingPort, django_capture_on_commit_callbacks
):
    running = run_in(conversation, Status.STREAMING)
    waiting = services.submit(conversation, "next", on_busy="queue").run

    with django_capture_on_commit_callbacks(execute=True):
        submitted = services.submit(conversation, "stop, this", on_busy="interrupt")

    for run in (running, waiting):
        run.refresh_from_db()
        assert (run.status, run.finish_reason) == ("cancelled", "superseded")
        assert_sound(run)
    assert submitted.run.turn == 3
    assert {event.type for _, event in port.published} == {"run_cancelled"}


@pytest.mark.parametrize("status", [Status.PENDING, Status.RUNNING, Status.STREAMING])
def test_reject_refuses_while_a_run_is_open(conversation: Conversation, status: Status):
    run_in(conversation, status)
    with pytest.raises(ConversationBusy):
        services.submit(conversation, "now", on_busy="reject")
    assert RunInput.objects.count() == 1


@pytest.mark.parametrize("status", [Status.DONE, Status.FAILED, Status.CANCELLED])
def test_after_the_end_a_message_makes_a_new_run_whatever_on_busy_says(
    conversation: Conversation, status: Status
):
    run_in(conversation, status)
    for turn, on_busy in enumerate(services.OnBusy, start=2):
        submitted = services.submit(conversation, "again", on_busy=on_busy)
        assert (submitted.merged, submitted.run.turn) == (False, turn)
        services.cancel(submitted.run.pk)


def test_the_same_key_gives_the_first_answer_again(conversation: Conversation):
    first = services.submit(conversation, "hi", key="k1")
    again = services.submit(conversation, "hi", key="k1")
    other = services.submit(conversation, "hi", key="k2")

    assert (again.run, again.merged, again.position) == (first.run, False, 0)
    assert other.run != first.run
    assert RunInput.objects.count() == 2


def test_the_same_key_of_a_merged_message_says_merged_again(conversation: Conversation):
    run = run_in(conversation, Status.STREAMING)
    services.submit(conversation, "more", key="k1")
    services.cancel(run.pk)
    again = services.submit(conversation, "more", key="k1")
    assert (again.run, again.merged, again.position) == (run, True, 1)


def test_the_same_key_with_another_message_is_refused(conversation: Conversation):
    services.submit(conversation, "hi", key="k1")
    with pytest.raises(KeyReused):
        services.submit(conversation, "ho", key="k1")
    assert RunInput.objects.count() == 1


@pytest.mark.parametrize("text", ["", "   \n", "x" * 20_001])
def test_a_text_that_cannot_be_answered_is_refused_whole(conversation: Conversation, text: str):
    with pytest.raises(InvalidText):
        services.submit(conversation, text)
    assert not Run.objects.exists()
    assert not RunInput.objects.exists()


def test_nul_and_lone_surrogates_are_stored_as_the_replacement_character(
    conversation: Conversation,
):
    submitted = services.submit(conversation, "a\0b\ud800")
    assert texts(submitted.run) == ["a\ufffdb\ufffd"]


def test_an_unknown_agent_is_refused(conversation: Conversation):
    with pytest.raises(UnknownAgent, match="nobody"):
        services.submit(conversation, "hi", agent="nobody")


def test_cancel_is_idempotent_and_announced_once(
    conversation: Conversation, port: RecordingPort, django_capture_on_commit_callbacks
):
    run = run_in(conversation, Status.STREAMING)
    with django_capture_on_commit_callbacks(execute=True):
        assert services.cancel(run.pk).status == Status.CANCELLED
        assert services.cancel(run.pk).status == Status.CANCELLED
    assert [event.type for _, event in port.published] == ["run_cancelled"]


def test_cancelling_what_is_not_there_is_not_found(conversation: Conversation):
    with pytest.raises(NotFound):
        services.cancel(conversation.pk)


def test_deleting_a_conversation_leaves_nothing_behind(
    conversation: Conversation, port: RecordingPort, django_capture_on_commit_callbacks
):
    run = run_in(conversation, Status.STREAMING)
    assert log(run)

    with django_capture_on_commit_callbacks(execute=True):
        services.delete(conversation.pk)

    assert not Run.objects.exists()
    assert not Message.objects.exists()
    assert port.deleted == [run.pk]
    with pytest.raises(NotFound):
        services.submit(conversation, "hello?")
