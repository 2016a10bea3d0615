"""A visitor with a browser session, on the standard library alone."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse
from http.cookies import SimpleCookie
from typing import Any, NamedTuple
from uuid import UUID

from django.conf import settings

POLL = 0.05

Json = dict[str, Any]


class CheckFailed(Exception):
    """Something is not as promised; the message is the evidence."""


class Received(NamedTuple):
    """An event, as the stream or the log gives it."""

    id: int
    type: str
    data: Json


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a message."""

    status: int
    merged: bool
    run_id: UUID


class Visitor:
    """Talks to one gateway until `deadline` (monotonic seconds). Usable from several threads."""

    def __init__(self, address: tuple[str, int], *, deadline: float) -> None:
        self._address = address
        self._deadline = deadline
        self._cookies: dict[str, str] = {}
        self._ask("GET", "/").read()

    def converse(self) -> UUID:
        """A new conversation."""
        return UUID(self._call("POST", "/api/conversations", {})[1]["id"])

    def conversation(self, conversation_id: UUID) -> Json:
        return self._call("GET", f"/api/conversations/{conversation_id}")[1]

    def say(self, conversation_id: UUID, text: str) -> Answer:
        """Send a message, for the demo to answer."""
        path = f"/api/conversations/{conversation_id}/messages"
        status, answer = self._call("POST", path, {"text": text, "agent": "demo"})
        return Answer(status, answer["merged"], UUID(answer["run"]["id"]))

    def run(self, run_id: UUID) -> Json:
        return self._call("GET", f"/api/runs/{run_id}")[1]

    def run_when(self, run_id: UUID, condition: Callable[[Json], bool], what: str) -> Json:
        """The run, as soon as the condition holds. `what` says what was waited for."""
        while not condition(run := self.run(run_id)):
            if time.monotonic() > self._deadline:
                raise CheckFailed(f"waited in vain until the run {what}")
            time.sleep(POLL)
        return run

    def log(self, run_id: UUID) -> list[Received]:
        """The stored events."""
        answer = self._call("GET", f"/api/runs/{run_id}/events")[1]
        return [Received(row["seq"], row["type"], row["data"]) for row in answer["events"]]

    def stream(
        self, run_id: UUID, *, last_id: int | None = None
    ) -> Generator[Received, None, None]:
        """The run's events as they arrive, until the server ends the stream."""
        headers = {} if last_id is None else {"Last-Event-ID": str(last_id)}
        with closing(self._ask("GET", f"/api/runs/{run_id}/stream", headers=headers)) as response:
            if response.status != 200:
                raise CheckFailed(f"the stream answered {response.status}")
            fields: dict[str, str] = {}
            for line in response:
                name, _, value = line.decode().rstrip("\n").partition(": ")
                if name:
                    fields[name] = value
                    continue
                if "data" in fields:
                    yield _received(fields)
                fields = {}
                if time.monotonic() > self._deadline:
                    raise CheckFailed("the stream does not end")

    def _call(self, method: str, path: str, body: Json | None = None) -> tuple[int, Json]:
        with closing(self._ask(method, path, body)) as response:
            content = response.read()
        if response.status >= 300:
            raise CheckFailed(f"{method} {path} answered {response.status}: {content[:200]!r}")
        return response.status, json.loads(content)

    def _ask(
        self, method: str, path: str, body: Json | None = None, headers: Json | None = None
    ) -> HTTPResponse:
        patience = max(1.0, self._deadline - time.monotonic())
        connection = HTTPConnection(*self._address, timeout=patience)
        sent = {"Connection": "close", "Cookie": self._cookie(), **(headers or {})}
        if body is not None:
            sent["Content-Type"] = "application/json"
            sent["X-CSRFToken"] = self._cookies.get(settings.CSRF_COOKIE_NAME, "")
        connection.request(method, path, None if body is None else json.dumps(body), sent)
        response = connection.getresponse()
        for header in response.headers.get_all("Set-Cookie", []):
            self._cookies |= {name: cookie.value for name, cookie in SimpleCookie(header).items()}
        return response

    def _cookie(self) -> str:
        return "; ".join(f"{name}={value}" for name, value in self._cookies.items())


def _received(fields: dict[str, str]) -> Received:
    data = json.loads(fields["data"])
    if "id" not in fields:
        raise CheckFailed(f"the stream broke off: {data}")
    return Received(int(fields["id"]), fields["event"], data)
