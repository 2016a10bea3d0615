"""`manage.py chat` without processes: what it makes of a stream, and how it ends."""

from __future__ import annotations

import asyncio
import io
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from koda.terminal.frames import Frames, Received
from koda.terminal.printer import MAX_NOTE, Printer
from koda.terminal.session import NotServed, Session, Unreachable
from streaming import wire
from tests.waiting import until


def frame(seq: int | None, event: str, **data: object) -> bytes:
    return wire.frame(seq=seq, event=event, data=data)


STARTED = frame(0, "run_started", attempt=1, agent="demo")
DONE = frame(2, "run_completed", finish_reason="stop", usage=None)
CANCELLED = frame(2, "run_cancelled", reason="user")


def said(seq: int, text: str) -> bytes:
    return frame(seq, "delta", text=text)


class ScriptedPlace:
    """Each connection gives the next of these chunks, an error among them is raised."""

    def __init__(self, *connections: list[bytes | Exception]) -> None:
        self.connections = list(connections)
        self.last_ids: list[int | None] = []
        self.cancelled = asyncio.Event()
        self.cancels: list[Exception] = []
        """What the next calls of cancel raise."""

    async def ask(self, text: str, agent: str | None) -> None:
        if agent == "nobody":
            raise NotServed("no agent is called 'nobody'")

    @asynccontextmanager
    async def follow(self, last_id: int | None) -> AsyncIterator[AsyncIterator[bytes]]:
        self.last_ids.append(last_id)
        yield self._chunks(self.connections.pop(0))

    async def _chunks(self, chunks: list[bytes | Exception]) -> AsyncIterator[bytes]:
        for chunk in chunks:
            if isinstance(chunk, Exception):
                raise chunk
            yield chunk
        if not self.connections:
            await self.cancelled.wait()
            yield CANCELLED

    async def cancel(self) -> None:
        if self.cancels:
            raise self.cancels.pop(0)
        self.cancelled.set()


class Terminal:
    """A session with its output in strings."""

    def __init__(self, place: ScriptedPlace) -> None:
        self.out, self.notes = io.StringIO(), io.StringIO()
        self.session = Session(place, Printer(self.out, self.notes))

    async def run(self, agent: str | None = None) -> int:
        return await self.session.run("hi", agent)


@pytest.fixture(autouse=True)
def _no_delay(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("koda.terminal.session.RECONNECT_DELAY", 0)


def test_events_come_out_whole_wherever_the_bytes_are_cut():
    stream = wire.PRELUDE + said(1, "你好\n\n") + wire.PING + DONE + wire.error("gone", "x")
    for cut in range(len(stream)):
        frames = Frames()
        events = [*frames.feed(stream[:cut]), *frames.feed(stream[cut:])]
        assert [event.id for event in events] == [1, 2, None]
        assert events[0] == Received(1, "delta", {"text": "你好\n\n"})
        assert [event.terminal for event in events] == [False, True, False]


async def test_a_dropped_connection_is_resumed_after_the_last_id():
    place = ScriptedPlace(
        [STARTED, said(1, "one "), Unreachable("cut")],
        [Unreachable("still down")],
        [wire.error("reconnect", "shutting down")],
        [],
        [said(2, "two"), frame(3, "run_completed", finish_reason="stop", usage=None)],
    )
    terminal = Terminal(place)
    assert await terminal.run() == 0
    assert terminal.out.getvalue() == "one two\n"
    assert place.last_ids == [None, 1, 1, 1, 1]


async def test_the_exit_code_tells_how_the_run_ended():
    failed = frame(1, "run_failed", code="overloaded", message="Too much.")
    for end, code in ((DONE, 0), (failed, 1), (CANCELLED, 3), (wire.error("gone", "Gone."), 1)):
        assert await Terminal(ScriptedPlace([STARTED, end])).run() == code


async def test_a_question_that_is_not_served_says_why():
    terminal = Terminal(ScriptedPlace())
    assert await terminal.run(agent="nobody") == 1
    assert "no agent is called 'nobody'" in terminal.notes.getvalue()


async def test_nobody_waits_for_ever_for_a_server_that_is_away(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("koda.terminal.session.PATIENCE", -1)
    terminal = Terminal(ScriptedPlace([Unreachable("the server cannot be reached")]))
    assert await terminal.run() == 1
    assert "the server cannot be reached" in terminal.notes.getvalue()


async def test_ctrl_c_stops_the_run_even_if_the_first_try_does_not_arrive():
    place = ScriptedPlace([STARTED, said(1, "one")])
    place.cancels = [Unreachable("away")]
    terminal = Terminal(place)
    running = asyncio.create_task(terminal.run())
    await until(terminal.out.getvalue, "the first word")
    os.kill(os.getpid(), signal.SIGINT)
    assert await running == 130
    assert "[cancelled (user)]" in terminal.notes.getvalue()


async def test_a_second_ctrl_c_leaves_without_waiting():
    place = ScriptedPlace([STARTED, said(1, "one")])
    place.cancels = [Unreachable("away")] * 100_000
    terminal = Terminal(place)
    running = asyncio.create_task(terminal.run())
    await until(terminal.out.getvalue, "the first word")
    os.kill(os.getpid(), signal.SIGINT)
    await until(lambda: "once more" in terminal.notes.getvalue(), "the word that it is stopping")
    os.kill(os.getpid(), signal.SIGINT)
    assert await running == 130
    assert not place.cancelled.is_set()


def show(*frames: bytes) -> tuple[str, str]:
    out, notes = io.StringIO(), io.StringIO()
    printer = Printer(out, notes)
    for received in Frames().feed(b"".join(frames)):
        printer.show(received)
    return out.getvalue(), notes.getvalue()


def test_tools_are_short_lines_beside_the_answer():
    huge = {"found": "x" * 5000}
    out, notes = show(
        said(1, "Looking"),
        frame(2, "tool_started", tool_call_id="c1", name="find", input={"order": "1"}),
        frame(3, "tool_completed", tool_call_id="c1", output=huge),
        frame(4, "tool_failed", tool_call_id="c1", error="no\nluck"),
        said(5, "Found."),
        frame(6, "run_completed", finish_reason="stop", usage=None),
    )
    assert out == "Looking\nFound.\n"
    first, second, third = notes.splitlines()
    assert first == '[find {"order": "1"}]'
    assert second.startswith("[find → {")
    assert len(second) == MAX_NOTE + 2
    assert third == "[find failed: no luck]"


def test_an_answer_that_starts_again_says_so():
    restarted = frame(2, "run_restarted", reason="merged", attempt=1, inputs=["a", "b"])
    out, notes = show(said(1, "Old"), restarted, said(3, "New"))
    assert out == "Old\nNew"
    assert notes == "[the answer starts again (merged)]\n"


def test_a_snapshot_adds_only_what_was_not_printed_yet():
    assert show(said(1, "One "), frame(9, "snapshot", text="One two"))[0] == "One two"
    assert show(said(1, "Old"), frame(9, "snapshot", text="New"))[0] == "Old\nNew"


def test_a_model_cannot_take_over_the_terminal():
    out, notes = show(
        said(1, "a\x1b[2Jb\x07\r\n\u202f😀\tc"),
        frame(2, "tool_failed", tool_call_id="\x1b", error="\x9b"),
    )
    assert out == "a[2Jb\n\u202f😀\tc\n"
    assert not {"\x1b", "\x9b"} & set(notes)
