"""A run behind a URL, over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Self

import httpx

from koda.terminal.session import NotServed, Unreachable

TIMEOUT = httpx.Timeout(30, read=60)
"""Seconds. A stream is never silent for as long as `read`: it pings."""


class Server:
    """A client with a token or, where visitors are admitted, with a session of its own."""

    def __init__(
        self, url: str, token: str | None, *, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self._token = token
        self._http = httpx.AsyncClient(base_url=url, timeout=TIMEOUT, transport=transport)
        self._http.headers["Referer"] = url  # Django asks for it over https
        if token:
            self._http.headers["Authorization"] = f"Bearer {token}"
        self._run = ""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self._http.aclose()

    async def ask(self, text: str, agent: str | None) -> None:
        if not self._token:
            with _telling():
                await self._http.get("/")  # sets the session and the CSRF cookie
            self._http.headers["X-CSRFToken"] = self._http.cookies.get("csrftoken") or ""
        conversation = await self._post("conversations", {"agent": agent} if agent else {})
        answer = await self._post(f"conversations/{conversation['id']}/messages", {"text": text})
        self._run = answer["run"]["id"]

    @asynccontextmanager
    async def follow(self, last_id: int | None) -> AsyncIterator[AsyncIterator[bytes]]:
        headers = {} if last_id is None else {"Last-Event-ID": str(last_id)}
        path = f"/api/runs/{self._run}/stream"
        with _telling():
            async with self._http.stream("GET", path, headers=headers) as response:
                if response.status_code != 200:
                    await response.aread()
                    _check(response)
                    raise NotServed("the run has ended, and its end was not told")
                yield response.aiter_raw()

    async def cancel(self) -> None:
        await self._post(f"runs/{self._run}/cancel", {})

    async def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        with _telling():
            response = await self._http.post(f"/api/{path}", json=body)
        _check(response)
        answer: dict[str, Any] = response.json()
        return answer


@contextmanager
def _telling() -> Iterator[None]:
    try:
        yield
    except (httpx.TransportError, httpx.StreamError) as error:
        raise Unreachable(f"the server cannot be reached ({type(error).__name__})") from None


def _check(response: httpx.Response) -> None:
    """Raises Unreachable where waiting may help, NotServed for every other error."""
    if response.is_success:
        return
    try:
        reason = response.json()["detail"]
    except (ValueError, KeyError, TypeError):
        reason = response.reason_phrase
    said = f"{response.status_code}: {reason}"
    if response.status_code in {429, 502, 503, 504}:
        raise Unreachable(said)
    raise NotServed(said)
