"""What `manage.py chat --url` sends to a server, and what it makes of its errors."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

from koda.terminal.server import Server
from koda.terminal.session import NotServed, Unreachable

CONVERSATION = {"id": "c1"}
RUN = {"run": {"id": "r1"}}


def answering(*answers: httpx.Response) -> tuple[list[httpx.Request], httpx.MockTransport]:
    """A transport that gives these answers in turn, and the requests that it got."""
    asked: list[httpx.Request] = []
    left = list(answers)

    def handle(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return left.pop(0)

    return asked, httpx.MockTransport(handle)


def server(transport: httpx.MockTransport, token: str | None) -> Server:
    return Server("https://koda.test", token, transport=transport)


async def test_a_token_is_sent_as_a_bearer_and_no_session_begins():
    asked, transport = answering(
        httpx.Response(201, json=CONVERSATION), httpx.Response(201, json=RUN)
    )
    async with server(transport, "secret") as there:
        await there.ask("hi", "demo")
    assert [request.url.path for request in asked] == [
        "/api/conversations",
        "/api/conversations/c1/messages",
    ]
    assert all(request.headers["Authorization"] == "Bearer secret" for request in asked)
    assert all("X-CSRFToken" not in request.headers for request in asked)


async def test_without_a_token_the_page_gives_a_session_and_its_csrf_token():
    page = httpx.Response(200, headers={"Set-Cookie": "csrftoken=t; Secure; Path=/"})
    asked, transport = answering(
        page, httpx.Response(201, json=CONVERSATION), httpx.Response(201, json=RUN)
    )
    async with server(transport, None) as there:
        await there.ask("hi", None)
    assert asked[0].url.path == "/"
    for request in asked[1:]:
        assert request.headers["X-CSRFToken"] == "t"
        assert request.headers["Cookie"] == "csrftoken=t"
        assert request.headers["Referer"] == "https://koda.test"


@pytest.mark.parametrize(
    ("answer", "error", "said"),
    [
        (httpx.Response(401, json={"detail": "Sign in first."}), NotServed, "401: Sign in first."),
        (httpx.Response(404, text="<html>"), NotServed, "404: Not Found"),
        (httpx.Response(301), NotServed, "301: Moved Permanently"),
        (httpx.Response(503, json={"detail": "No."}), Unreachable, "503: No."),
        (httpx.Response(429, json={"detail": "Slowly."}), Unreachable, "429: Slowly."),
    ],
)
async def test_an_error_is_told_with_its_reason(answer, error, said):
    _, transport = answering(answer)
    async with server(transport, "secret") as there:
        with pytest.raises(error, match=f"^{said}"):
            await there.ask("hi", None)


async def _stream() -> AsyncIterator[bytes]:
    yield b": koda\n\n"


async def test_a_stream_is_asked_for_after_the_last_id_and_a_204_is_its_end():
    asked, transport = answering(
        httpx.Response(200, content=_stream()), httpx.Response(204), httpx.Response(502)
    )
    async with server(transport, "secret") as there:
        async with there.follow(5) as chunks:
            assert [chunk async for chunk in chunks] == [b": koda\n\n"]
        with pytest.raises(NotServed, match="has ended"):
            async with there.follow(None):
                pass
        with pytest.raises(Unreachable):
            async with there.follow(None):
                pass
    assert asked[0].headers["Last-Event-ID"] == "5"
    assert "Last-Event-ID" not in asked[1].headers
