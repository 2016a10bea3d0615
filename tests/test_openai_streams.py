"""What model servers put on the wire: framings, oddities and cuts."""

import pytest

from runs.agents import (
    Event,
    Finish,
    Reasoning,
    TransientError,
    Usage,
)
from runs.agents.chat_stream import ChatStream
from runs.agents.sse import ServerEvent, SSEDecoder
from runs.sanitize import TextCleaner
from tests.asking import ask, ask_failing, raw, text_of
from tests.stub_model import (
    StubModel,
    bytewise,
    chunk,
    cut,
    delta,
    done,
    event,
    finish,
    reasoning,
    silence,
    usage,
)

# What splits lines in Python's str.splitlines and in nothing that speaks SSE.
SEPARATORS = "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg\x1dh\x1ei"
HELLO = "你好 😀"


@pytest.fixture
def stub():
    with StubModel() as running:
        yield running


FRAMINGS = {
    "lf": lambda body: body,
    "crlf": lambda body: body.replace(b"\n", b"\r\n"),
    "cr": lambda body: body.replace(b"\n", b"\r"),
    "bom": lambda body: b"\xef\xbb\xbf" + body,
    "bom and crlf": lambda body: b"\xef\xbb\xbf" + body.replace(b"\n", b"\r\n"),
}


@pytest.mark.parametrize("content_type", ["text/event-stream", None])
@pytest.mark.parametrize("framing", FRAMINGS)
async def test_exact_text_in_every_framing_byte_by_byte(stub, framing, content_type):
    body = FRAMINGS[framing](b"".join([delta(HELLO), delta("\u2028\x85"), finish(), done()]))
    stub.reply(*bytewise(body), content_type=content_type)
    stub.reply(body, content_type=content_type, chunked=False)
    assert text_of(await ask(stub)) == HELLO + "\u2028\x85"
    assert text_of(await ask(stub)) == HELLO + "\u2028\x85"


@pytest.mark.parametrize("framing", FRAMINGS)
def test_every_cut_of_the_stream_gives_the_same_answer(framing):
    steps = [chunk({"role": "assistant"}), delta(HELLO), raw(SEPARATORS), reasoning("嗯")]
    body = FRAMINGS[framing](b"".join([*steps, finish(), usage(1, 2), done()]))

    def fold(*pieces: bytes) -> list[str | Event]:
        stream = ChatStream()
        spoken = [item for piece in pieces for item in stream.feed(piece)]
        return [*spoken, *stream.close()]

    whole = [HELLO, SEPARATORS, Reasoning("嗯"), Usage(1, 2), Finish("stop")]
    for place in range(len(body) + 1):
        assert fold(body[:place], b"", body[place:]) == whole
    assert fold(*bytewise(body)) == whole


def test_the_decoder_follows_the_specification():
    decoder = SSEDecoder()
    stream = (
        b"\xef\xbb\xbfdata: one\ndata:two\ndata\ndata:  three\n\n"
        b"event: named\r\ndata: x\r\n\r\nevent: dropped\n\n"
        b"data: unnamed \xff\n\ndata:\n\n: comment\nid: 1\nretry: 5\nfoo: bar\n\ndata: unfinished\n"
    )
    assert list(decoder.feed(stream)) == [
        ServerEvent("", "one\ntwo\n\n three"),
        ServerEvent("named", "x"),
        ServerEvent("", "unnamed \ufffd"),
    ]


async def test_unescaped_separators_and_control_characters_are_text(stub):
    stub.reply(raw(SEPARATORS), finish(), done())
    assert b"\x0b" in raw(SEPARATORS)
    assert text_of(await ask(stub)) == SEPARATORS


async def test_frames_inside_the_text_stay_text(stub):
    hostile = "a\r\nevent: done\rid: 999\ndata: x\n\n"
    stub.reply(delta(hostile), finish(), done())
    assert text_of(await ask(stub)) == hostile


async def test_what_is_not_text_is_ignored(stub):
    stub.reply(
        b"retry: 2000\n\n",
        b": ping\n\n",
        b"id: 7\n\n",
        b"event: nothing\n\n",
        chunk({"role": "assistant"}),
        chunk({"content": None}),
        chunk({"content": ""}),
        event({"choices": [{"delta": None}]}),
        event({"id": "x", "choices": []}),
        event({"id": "x", "choices": None, "error": None}),
        event({"id": "x"}),
        event("null"),
        event("[1]"),
        chunk({"content": "only", "colour": "blue", "tool_calls": None}, logprobs=None),
        chunk({"content": 5, "tool_calls": [None, 3]}, finish_reason="stop"),
        b"data:[DONE]\n\n",
    )
    assert await ask(stub) == ["only", Finish("stop")]


@pytest.mark.parametrize("field_name", ["reasoning_content", "reasoning"])
async def test_reasoning_is_kept_apart(stub, field_name):
    stub.reply(reasoning("hm", field_name=field_name), finish(), done())
    assert await ask(stub) == [Reasoning("hm"), Finish("stop")]


async def test_halves_of_a_character_in_two_deltas_are_joined_by_the_cleaner(stub):
    halves = [
        rb'{"choices":[{"delta":{"content":"\ud83d"}}]}',
        rb'{"choices":[{"delta":{"content":"\ude00"}}]}',
    ]
    stub.reply(*(b"data: " + half + b"\n\n" for half in halves), finish(), done())
    cleaner = TextCleaner()
    spoken = [cleaner.feed(item) for item in await ask(stub) if isinstance(item, str)]
    assert "".join(spoken) == "😀"


async def test_an_answer_may_end_without_a_done_marker_or_without_a_finish_reason(stub):
    stub.reply(delta("x"), finish("length"))
    stub.reply(delta("x"), done())
    assert await ask(stub) == ["x", Finish("length")]
    assert await ask(stub) == ["x"]


async def test_a_complete_answer_is_not_lost_to_a_cut_or_a_connection_left_open(stub, monkeypatch):
    monkeypatch.setattr("runs.agents.openai.TAIL_WAIT", 0.05)
    stub.reply(delta("x"), finish(), cut())
    stub.reply(delta("x"), finish(), silence())
    stub.reply(delta("x"), done(), silence())
    assert await ask(stub) == ["x", Finish("stop")]
    assert await ask(stub) == ["x", Finish("stop")]
    assert await ask(stub) == ["x"]


@pytest.mark.parametrize("chunked", [True, False])
async def test_a_stream_cut_in_the_middle_is_transient(stub, chunked):
    stub.reply(delta("half"), delta("lost")[:-5], cut(), chunked=chunked)
    items, error = await ask_failing(stub)
    assert items == ["half"]
    assert isinstance(error, TransientError)
    assert error.code == "stream_cut"


async def test_an_empty_stream_is_a_cut_one(stub):
    stub.reply()
    _, error = await ask_failing(stub)
    assert (type(error), error.code) == (TransientError, "stream_cut")


@pytest.mark.parametrize("framing", FRAMINGS)
def test_the_decoder_does_not_mind_where_an_event_of_several_lines_is_cut(framing):
    body = FRAMINGS[framing]("event: e\ndata: 你\ndata: b\n\ndata: c\n\n".encode())
    for place in range(len(body) + 1):
        decoder = SSEDecoder()
        events = [event for piece in (body[:place], body[place:]) for event in decoder.feed(piece)]
        assert events == [ServerEvent("e", "你\nb"), ServerEvent("", "c")]
