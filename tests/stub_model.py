"""A scripted model server on loopback: the fake at the far end of the `openai` agent.

    with StubModel() as stub:
        stub.reply(delta("Hel"), pause(0.5), delta("lo"), finish(), done())
        ...  # something asks stub.base_url
        assert stub.requests[0].json["messages"]

Each request takes the next scripted reply, or the `default` when the script is used up: a reply,
or a function of the request that makes one. It runs in a thread of its own, so that synchronous
tests, event loops and other processes can use it.
"""

import asyncio
import contextlib
import json
import re
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any, Self

from tests.waiting import until, wait_until

STREAM = "text/event-stream; charset=utf-8"


@dataclass(eq=False)
class Request:
    """A request as it was received, and what became of its answer."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    disconnected: threading.Event = field(default_factory=threading.Event)
    """The client left before the whole reply was out."""
    answered: threading.Event = field(default_factory=threading.Event)
    """The whole reply is out."""

    @property
    def json(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(self.body)
        return value


@dataclass(frozen=True)
class Pause:
    """Silence of `seconds`, or until `gate` is set, or until the client leaves."""

    seconds: float | None = None
    gate: threading.Event | None = None


class Cut:
    """The connection is closed here, in the middle of the reply."""


Step = bytes | Pause | Cut


@dataclass(frozen=True)
class Reply:
    """`chunked` lets a client see a cut; without, the end of the body is the connection's."""

    steps: tuple[Step, ...]
    status: int = 200
    content_type: str | None = STREAM
    chunked: bool = True

    def head(self) -> bytes:
        lines = [f"HTTP/1.1 {self.status} Scripted", "Connection: close"]
        if self.content_type:
            lines.append(f"Content-Type: {self.content_type}")
        if self.chunked:
            lines.append("Transfer-Encoding: chunked")
        return "\r\n".join([*lines, "", ""]).encode()


class StubModel:
    """Start it with `with`. `requests` holds what it was asked, oldest first."""

    def __init__(self, default: Reply | Callable[[Request], Reply] | None = None) -> None:
        self.default = default
        self.requests: list[Request] = []
        self.base_url = ""
        self._script: deque[Reply] = deque()
        self._thread = threading.Thread(target=self._run, name="stub-model", daemon=True)
        self._ready = threading.Event()

    def reply(
        self,
        *steps: Step,
        status: int = 200,
        content_type: str | None = STREAM,
        chunked: bool = True,
    ) -> None:
        """Scripts the reply to the next request that has none yet."""
        self._script.append(Reply(steps, status, content_type, chunked))

    def wait_for_request(self, number: int = 1) -> Request:
        """The `number`th request, counted from 1."""
        wait_until(lambda: len(self.requests) >= number, f"request {number} to the model stub")
        return self.requests[number - 1]

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(10), "the model stub did not start"
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.base_url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._connection(reader, writer), name="stub-connection")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await _read_request(reader)
            reply = self._script.popleft() if self._script else self.default
            assert reply is not None, "the model stub was asked once more than it was told"
            reply = reply(request) if callable(reply) else reply
            self.requests.append(request)
            async with _watched(reader, request) as gone:
                await _play(reply, writer, gone)
                if not gone.is_set():
                    request.answered.set()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client left; `disconnected` says so
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


async def _read_request(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.strip().split("\r\n")
    method, path, _ = first.split(" ")
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
    }
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Request(method, path, headers, body)


@contextlib.asynccontextmanager
async def _watched(reader: asyncio.StreamReader, request: Request) -> AsyncIterator[asyncio.Event]:
    """Sets the event, and `disconnected`, when the client closes before the block ends."""
    gone = asyncio.Event()

    async def watch() -> None:
        with contextlib.suppress(ConnectionError):
            while await reader.read(1024):
                pass
        gone.set()
        request.disconnected.set()

    watcher = asyncio.create_task(watch(), name="stub-watch")
    try:
        yield gone
    finally:
        watcher.cancel()


async def _play(reply: Reply, writer: asyncio.StreamWriter, gone: asyncio.Event) -> None:
    writer.write(reply.head())
    for step in reply.steps:
        if gone.is_set() or isinstance(step, Cut):
            return
        if isinstance(step, Pause):
            await writer.drain()
            await _pause(step, gone)
        elif step:
            writer.write(b"%x\r\n%b\r\n" % (len(step), step) if reply.chunked else step)
            await writer.drain()
    if reply.chunked:
        writer.write(b"0\r\n\r\n")
    await writer.drain()


async def _pause(pause: Pause, gone: asyncio.Event) -> None:
    waits: list[asyncio.Future[bool]] = [asyncio.ensure_future(gone.wait())]
    if pause.gate is not None:
        waits.append(
            asyncio.ensure_future(until(pause.gate.is_set, "the gate of a pause", timeout=60))
        )
    try:
        await asyncio.wait(waits, timeout=pause.seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


def pause(seconds: float) -> Pause:
    return Pause(seconds=seconds)


def silence() -> Pause:
    """Until the client leaves."""
    return Pause()


def until_set(gate: threading.Event) -> Pause:
    """Until the test sets `gate`."""
    return Pause(gate=gate)


def cut() -> Cut:
    return Cut()


def event(data: object, *, name: str = "") -> bytes:
    """One server-sent event; `data` is sent as JSON unless it is text."""
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return (f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode()


def chunk(delta: dict[str, Any] | None = None, **choice: object) -> bytes:
    """A chunk with one choice, which has this delta and these further fields."""
    choices = [{"index": 0, "delta": delta or {}, "finish_reason": None, **choice}]
    return event({"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": choices})


def delta(text: str) -> bytes:
    return chunk({"content": text})


def reasoning(text: str, *, field_name: str = "reasoning_content") -> bytes:
    return chunk({"content": None, field_name: text})


def tool_call(*fragments: dict[str, Any]) -> bytes:
    return chunk({"tool_calls": list(fragments)})


def finish(reason: str = "stop") -> bytes:
    return chunk(finish_reason=reason)


def usage(input_tokens: int, output_tokens: int) -> bytes:
    counts = {"prompt_tokens": input_tokens, "completion_tokens": output_tokens}
    return event({"id": "c", "choices": [], "usage": counts})


def error_event(code: str | int | None, message: str, *, name: str = "") -> bytes:
    return event({"error": {"message": message, "type": None, "code": code}}, name=name)


def done() -> bytes:
    return event("[DONE]")


def answer(text: str) -> tuple[bytes, ...]:
    """A whole, ordinary reply, a word at a time, with its usage: 5 tokens in, 7 out."""
    words = [delta(word) for word in re.findall(r"\S+\s*|\s+", text)]
    return (chunk({"role": "assistant", "content": ""}), *words, finish(), usage(5, 7), done())


def bytewise(*steps: bytes) -> list[bytes]:
    """The same bytes, one at a time."""
    return [bytes([byte]) for byte in b"".join(steps)]
