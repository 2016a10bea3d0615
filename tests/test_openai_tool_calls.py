"""Tool calls in every form that providers stream them in. None was offered: all are refused."""

import pytest

from runs.agents import (
    Event,
    Finish,
    ToolFailed,
    ToolStarted,
)
from runs.agents.chat_stream import ChatStream
from tests.stub_model import (
    delta,
    done,
    finish,
    tool_call,
)


def fold(*pieces: bytes) -> list[str | Event]:
    stream = ChatStream()
    spoken = [item for piece in pieces for item in stream.feed(piece)]
    return [*spoken, *stream.close()]


def call(arguments: object = None, *, name: str | None = None, **rest: object) -> bytes:
    function = {"name": name, "arguments": arguments}
    return tool_call({**rest, "function": {k: v for k, v in function.items() if v is not None}})


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        pytest.param(
            [call("", name="f", id="a", index=0), call('{"x"', index=0), call(": 1}", index=0)],
            [("a", "f", {"x": 1})],
            id="in pieces",
        ),
        pytest.param(
            [
                call('{"x": 1}', name="f", id="a", index=0),
                call('{"x": 2}', name="g", id="b", index=0),
            ],
            [("a", "f", {"x": 1}), ("b", "g", {"x": 2})],
            id="same index",
        ),
        pytest.param(
            [
                call(name="f", id="a", index=0),
                call(name="g", id="b", index=0),
                call('{"x": 2}', index=0),
            ],
            [("a", "f", {}), ("b", "g", {"x": 2})],
            id="same index, then pieces without id",
        ),
        pytest.param(
            [call('{"x": 1}', name="f", id="a"), call('{"x": 2}', name="g", id="b")],
            [("a", "f", {"x": 1}), ("b", "g", {"x": 2})],
            id="no index",
        ),
        pytest.param(
            [call('{"x"', name="f"), call(": 1}"), call('{"x": 2}', name="f")],
            [("call_0", "f", {"x": 1}), ("call_1", "f", {"x": 2})],
            id="neither index nor id",
        ),
        pytest.param(
            [call('{"x": 1}', name="f", index=0), call('{"x": 2}', name="f", index=0)],
            [("call_0", "f", {"x": 1}), ("call_1", "f", {"x": 2})],
            id="same index, no id",
        ),
        pytest.param(
            [
                call('{"x"', name="f", id="a", index=0),
                call('{"x"', name="g", id="b", index=1),
                call(": 1}", index=0),
                call(": 2}", index=1),
            ],
            [("a", "f", {"x": 1}), ("b", "g", {"x": 2})],
            id="interleaved by index",
        ),
        pytest.param(
            [
                call('{"x"', name="f", id="a"),
                call('{"x"', name="g", id="b"),
                call(": 1}", id="a"),
                call(": 2}", id="b"),
            ],
            [("a", "f", {"x": 1}), ("b", "g", {"x": 2})],
            id="interleaved by id",
        ),
        pytest.param(
            [call('{"x"', name="f", id="a", index=0), call(": 1}", name="f", id="a", index=0)],
            [("a", "f", {"x": 1})],
            id="name and id repeated",
        ),
        pytest.param(
            [call('{"x"', name="f", index=0), call(": 1}", name="f", index=0)],
            [("call_0", "f", {"x": 1})],
            id="name repeated, no id",
        ),
        pytest.param([call(name="f", id="a")], [("a", "f", {})], id="no arguments"),
        pytest.param([call("", name="f", id="a")], [("a", "f", {})], id="empty arguments"),
        pytest.param([call("null", name="f", id="a")], [("a", "f", {})], id="null arguments"),
        pytest.param(
            [call({"x": 1}, name="f", id="a")], [("a", "f", {"x": 1})], id="arguments as an object"
        ),
        pytest.param(
            [call(name="f", id="call_1"), call(name="g")],
            [("call_1", "f", {}), ("call_2", "g", {})],
            id="made-up ids do not collide",
        ),
    ],
)
def test_tool_calls_keep_their_own_arguments_and_are_refused(steps, expected):
    items = fold(delta("Hm."), *steps, finish("tool_calls"), done())
    assert items[0] == "Hm."
    assert items[-1] == Finish("tool_calls")
    pairs = list(zip(items[1:-1:2], items[2:-1:2], strict=True))
    assert [started for started, _ in pairs] == [ToolStarted(*call) for call in expected]
    assert [failed for _, failed in pairs] == [
        ToolFailed(call_id, f"There is no tool named {name!r}.") for call_id, name, _ in expected
    ]


@pytest.mark.parametrize("arguments", ['{"x": ', "[1]", '"x"', "nope", "[" * 100_000])
def test_invalid_arguments_are_a_tool_error(arguments):
    steps = [call(arguments, name="f", id="a"), finish("tool_calls"), done()]
    started, failed, end = fold(*steps)
    assert started == ToolStarted("a", "f", {})
    assert isinstance(failed, ToolFailed)
    assert failed.error.startswith("Invalid JSON arguments: ")
    assert end == Finish("tool_calls")
