"""Frames as bytes, and where a client that comes back starts."""

import json

import pytest

from streaming import wire

HOSTILE = "a\r\nevent: done\rid: 999\ndata: x\n\n"


def test_a_frame_is_id_event_and_one_data_line():
    assert wire.frame(seq=0, event="run_started", data={"attempt": 1, "agent": "demo"}) == (
        b'id: 0\nevent: run_started\ndata: {"attempt":1,"agent":"demo"}\n\n'
    )


@pytest.mark.parametrize("text", [HOSTILE, "\u2028\u2029\u0085\x0b\x0c\x1c", "你好 😀", '"\\'])
def test_hostile_text_stays_inside_its_frame(text: str):
    raw = wire.frame(seq=3, event="delta", data={"text": text}).decode()
    assert "\r" not in raw
    head, event, data, *rest = raw.split("\n")
    assert (head, event, rest) == ("id: 3", "event: delta", ["", ""])
    assert json.loads(data.removeprefix("data: ")) == {"text": text}


def test_a_hostile_event_name_cannot_break_the_line():
    raw = wire.frame(seq=None, event=HOSTILE, data={}).decode()
    assert raw.count("\n") == 3
    assert "\r" not in raw


def test_the_error_frame_has_no_id():
    assert wire.error("reconnect", "bye").startswith(b"event: error\ndata: ")


@pytest.mark.parametrize(
    ("given", "start"),
    [
        (None, 0), ("", 0), ("0", 1), ("5", 6), ("007", 8), ("9" * 18, 10**18),
        ("-1", 0), (" 5", 0), ("5 ", 0), ("+5", 0), ("1_000", 0), ("1e3", 0), ("0x10", 0),
        ("5.0", 0), ("NaN", 0), ("9" * 19, 0), ("9" * 21, 0), ("5\n", 0),
        ("\u0665", 0), ("\u00b2", 0),
    ],
)  # fmt: skip
def test_only_a_plain_number_is_a_place_to_resume_from(given: str | None, start: int):
    assert wire.resume_from(wire.last_event_id(given)) == start
