"""Silence, locks and equal moments: what has to wait is neither lost nor out of order."""

from __future__ import annotations

import threading
import time

import pytest
from django.contrib.auth.base_user import AbstractBaseUser
from django.db import connection, transaction
from django.test import Client

from runs.history import load_turn
from runs.models import Conversation, Run, RunInput
from runs.states import Status
from streaming import groups, wire
from streaming.line import LineSettings
from tests.fakes import LEASE, RecordingPort, assert_sound, finish, pending_run
from tests.racing import started
from tests.reading import END, Log, Reader, publish, publish_when_watching, serving, watching
from tests.waiting import until
from tests.workers import Stage, db, reaches, working

PING = 0.1


async def pass_by(seconds: float) -> None:
    due = time.monotonic() + seconds
    await until(lambda: time.monotonic() >= due, "the time")


async def test_events_that_come_just_when_a_ping_is_due_are_all_delivered_on_one_connection():
    """C29: around the ping by a tenth of it, twenty times; then silence, then a hundred at once."""
    log = Log()
    chatty = LineSettings(ping_interval=PING, gap_wait=2, orderer_cap=64)
    async with serving(log, chatty) as gateway:
        reader = Reader(gateway, log)
        await publish_when_watching(log, reader)
        for number in range(20):
            await pass_by(PING * (0.9 + number / 100))
            await publish(log, *log.words(1))
        pings = reader.raw.count(wire.PING)
        await until(lambda: reader.raw.count(wire.PING) > pings + 2, "pings in the silence")
        for event in log.words(100):
            await publish(log, event)
        await publish(log, *log.write(END))
        await reader.end()
    assert reader.ids == list(range(122))


async def test_a_stream_outlives_its_membership_in_the_layer(monkeypatch: pytest.MonkeyPatch):
    """C46: where the layer forgets members in time; the Redis layer in use does not."""
    monkeypatch.setattr(groups.layer(), "group_expiry", 1, raising=False)
    log = Log()
    async with serving(log, sweep=0.2) as gateway:
        reader = Reader(gateway, log)
        await publish_when_watching(log, reader)
        await pass_by(1.5)
        await publish(log, *log.words(1))
        await watching(reader, 1)
        reads = len(log.reads)
        await publish(log, *log.write(END))
        await reader.end()
    assert reader.ids == [0, 1, 2]
    assert len(log.reads) == reads, "the end came through the layer"


@pytest.mark.django_db(transaction=True)
async def test_a_row_that_is_locked_delays_its_run_and_loses_nothing(port: RecordingPort):
    """C37."""
    stage, locked, release = Stage(), threading.Event(), threading.Event()

    def hold(run_id: object) -> None:
        with transaction.atomic():
            Run.objects.select_for_update().get(pk=run_id)
            locked.set()
            release.wait(10)
        connection.close()

    async with working(port, scripted=stage.respond):
        _, run = await started(port, stage)
        holder = threading.Thread(target=hold, args=[run.pk])
        holder.start()
        await until(locked.is_set, "the lock")
        words = [f"w{number} " for number in range(50)]
        for word in words:
            stage.say.put_nowait(word)
        stage.say.put_nowait(None)
        await pass_by(0.3)
        release.set()
        done = await reaches(run, Status.DONE)
        holder.join()
    assert done.output == "one " + "".join(words)
    assert [event.seq for _, event in port.published] == list(range(done.next_seq))
    await db(assert_sound, run)


def test_turns_and_corrections_of_one_moment_keep_their_order(
    admin_user: AbstractBaseUser, admin_client: Client, port: RecordingPort
):
    """C66: in the API, which is what the page shows, and in the request to the model."""
    conversation = Conversation.objects.create(owner_id=admin_user.pk)
    for text in ("first", "second"):
        run = pending_run(conversation, text, f"{text} corrected")
        assert Run.objects.claim(worker="w", lease=LEASE)
        finish(run)
    last = pending_run(conversation, "third")
    Run.objects.filter(conversation=conversation).update(created_at=last.created_at)
    RunInput.objects.filter(conversation=conversation).update(created_at=last.created_at)
    said = ["first", "first corrected", "second", "second corrected", "third"]
    turn = load_turn(last)
    asked = [message["content"] for message in turn.history if message["role"] == "user"]
    assert [*asked, *turn.inputs] == said
    shown = admin_client.get(f"/api/conversations/{conversation.pk}").json()["turns"]
    assert [one["text"] for turn in shown for one in turn["inputs"]] == said
