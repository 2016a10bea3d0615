"""A browser for running systems: its session and CSRF token, and a strict reader of streams."""

from __future__ import annotations

import json
import socket
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Self

import httpx

from tests.waiting import until

PATIENCE = httpx.Timeout(60)
TERMINAL = {"run_completed", "run_failed", "run_cancelled"}


@dataclass(frozen=True, slots=True)
class Frame:
    """What stood between two blank lines. `line` is the one line of a comment or of `retry`."""

    id: int | None = None
    event: str | None = None
    data: Any = None
    line: str = ""

    @property
    def terminal(self) -> bool:
        return self.event in TERMINAL or (self.data or {}).get("type") in TERMINAL


def parse(block: bytes) -> Frame:
    """A frame, exactly as the contract has it: anything else that SSE would allow fails."""
    text = block.decode()
    assert "\r" not in text, f"line ends other than LF: {text!r}"
    lines = text.split("\n")
    if lines[0].startswith((": ", "retry: ")):
        assert len(lines) == 1, f"one line was expected: {text!r}"
        return Frame(line=text)
    fields = [line.partition(": ") for line in lines]
    names = [name for name, _, _ in fields]
    assert names in (["id", "event", "data"], ["id", "data"], ["event", "data"]), repr(text)
    values = {name: value for name, _, value in fields}
    id = values.get("id")
    assert id is None or id == str(int(id)), f"not a plain number: {id!r}"
    return Frame(None if id is None else int(id), values.get("event"), json.loads(values["data"]))


class Stream:
    """One open connection to a run's stream. Reads only when asked to."""

    def __init__(self, response: httpx.Response) -> None:
        self.status = response.status_code
        self.headers = response.headers
        self.response = response
        self._chunks = response.aiter_raw()
        self._rest = b""
        self._parsed: deque[Frame] = deque()

    async def next(self) -> Frame | None:
        """The next frame, comments and `retry` included; None at the end."""
        while not self._parsed:
            chunk = await anext(self._chunks, None)
            if chunk is None:
                assert not self._rest, f"the stream ends in the middle of a frame: {self._rest!r}"
                return None
            *blocks, self._rest = (self._rest + chunk).split(b"\n\n")
            self._parsed.extend(map(parse, blocks))
        return self._parsed.popleft()

    async def find(self, condition: Callable[[Frame], bool], what: str) -> Frame:
        """Read on to the first frame that `condition` likes."""
        while (frame := await self.next()) is not None:
            if condition(frame):
                return frame
        raise AssertionError(f"the stream ended without {what}")

    async def take(self, count: int) -> list[Frame]:
        """The next `count` numbered frames, or fewer if the stream ends."""
        taken: list[Frame] = []
        while len(taken) < count and (frame := await self.next()) is not None:
            if frame.id is not None:
                taken.append(frame)
        return taken

    async def to_end(self) -> list[Frame]:
        """All numbered frames that are left."""
        left: list[Frame] = []
        while (frame := await self.next()) is not None:
            assert frame.event != "error", f"the stream ended with {frame.data}"
            if frame.id is not None:
                left.append(frame)
        return left


class Visitor:
    """Somebody with a browser. `async with` opens the page first, as a person would."""

    def __init__(self, url: str, *, receive_buffer: int | None = None) -> None:
        options = [(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)] if receive_buffer else []
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=20)
        transport = httpx.AsyncHTTPTransport(limits=limits, socket_options=options)
        self.http = httpx.AsyncClient(base_url=url, timeout=PATIENCE, transport=transport)

    async def __aenter__(self) -> Self:
        (await self.http.get("/")).raise_for_status()
        self.http.headers["X-CSRFToken"] = self.http.cookies["csrftoken"]
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.http.aclose()

    async def call(self, method: str, path: str, *, expect: int = 200, **more) -> dict[str, Any]:
        """An API call that must answer `expect`; its JSON."""
        response = await self.http.request(method, f"/api/{path}", **more)
        assert response.status_code == expect, f"{response.status_code}: {response.text[:2000]}"
        body: dict[str, Any] = response.json() if response.content else {}
        return body

    async def conversation(self, agent: str | None = None, **more) -> str:
        """A new conversation's id."""
        body = {"agent": agent, **more}
        return str((await self.call("POST", "conversations", json=body, expect=201))["id"])

    async def say(
        self, conversation: str, text: str, *, expect: int = 201, **more
    ) -> dict[str, Any]:
        """Post a message."""
        path = f"conversations/{conversation}/messages"
        return await self.call("POST", path, json={"text": text, **more}, expect=expect)

    async def ask(self, agent: str, text: str = "go", **metadata) -> str:
        """The first message of a new conversation with a scripted agent; the run's id."""
        answer = await self.say(await self.conversation(agent), text, metadata=metadata)
        return str(answer["run"]["id"])

    async def run(self, run_id: str) -> dict[str, Any]:
        return await self.call("GET", f"runs/{run_id}")

    async def log(self, run_id: str) -> list[tuple[int, str, Any]]:
        """The stored rows: (seq, type, data)."""
        page = await self.call("GET", f"runs/{run_id}/events")
        assert page["next"] is None, "the log has more than one page"
        return [(event["seq"], event["type"], event["data"]) for event in page["events"]]

    @asynccontextmanager
    async def watch(
        self, run_id: str, *, last_id: int | str | None = None, **more
    ) -> AsyncIterator[Stream]:
        """Open a run's stream; leaving the block cuts the connection."""
        headers = {**more.pop("headers", {})}
        if last_id is not None:
            headers["Last-Event-ID"] = str(last_id)
        url = f"/api/runs/{run_id}/stream"
        async with self.http.stream("GET", url, headers=headers, **more) as response:
            yield Stream(response)

    async def read(self, run_id: str, *, last_id: int | None = None, **more) -> list[Frame]:
        """The run's stream from one connection, to its end; nothing for a 204."""
        async with self.watch(run_id, last_id=last_id, **more) as stream:
            if stream.status == 204:
                return []
            assert stream.status == 200, (await stream.response.aread()).decode()
            return await stream.to_end()


@dataclass
class Follower:
    """A page that keeps its last id and comes back whenever its connection ends."""

    visitor: Visitor
    run_id: str
    reachable: Callable[[], bool]
    """Whether coming back is worth a try."""
    events: list[Frame] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    """The codes of the `error` events, which end a connection but not the run."""
    connections: int = 0

    async def follow(self) -> list[Frame]:
        """Everything, to the run's end."""
        while not (self.events and self.events[-1].terminal):
            await until(self.reachable, "a gateway that accepts connections", timeout=60)
            try:
                await self._connect()
            except httpx.TransportError:
                continue
        return self.events

    async def _connect(self) -> None:
        last_id = self.events[-1].id if self.events else None
        async with self.visitor.watch(self.run_id, last_id=last_id) as stream:
            assert stream.status == 200, f"the stream answered {stream.status}"
            self.connections += 1
            while (frame := await stream.next()) is not None:
                if frame.event == "error":
                    self.errors.append(frame.data["code"])
                elif frame.id is not None:
                    self.events.append(frame)


def rows(frames: list[Frame]) -> list[tuple[int | None, str | None, Any]]:
    """Frames of the native protocol as the rows that they come from."""
    return [(frame.id, frame.event, frame.data) for frame in frames]


def text_of(log: list[tuple[int, str, Any]]) -> str:
    """The answer that a log adds up to: everything said since the last restart."""
    said = ""
    for _, type, data in log:
        if type == "delta":
            said += data["text"]
        elif type == "run_restarted":
            said = ""
    return said
