"""The shipped agent for any server that speaks OpenAI's streaming Chat Completions."""

import asyncio
import ipaddress
import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import TypeAlias, cast
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import openai
from openai.types.chat import ChatCompletionMessageParam

from runs.agents.base import (
    AgentError,
    ChatMessage,
    Event,
    PermanentError,
    TransientError,
    Turn,
)
from runs.agents.chat_stream import ChatStream
from runs.agents.provider_errors import status_error

Response: TypeAlias = openai.AsyncAPIResponse[object]

DEFAULT_BASE_URL = "https://api.openai.com/v1"
NO_KEY = "none"
"""What the client sends where none is needed; it insists on one."""
CONNECT_TIMEOUT = 10.0
"""Seconds. Silence after that is for the worker's idle limit to judge."""
READ_TIMEOUT = 600.0
TAIL_WAIT = 2.0
"""Seconds that a complete answer waits for its usage when the server does not end it."""


@dataclass(frozen=True)
class Endpoint:
    """Where and what to ask."""

    base_url: str
    api_key: str
    model: str
    system_prompt: str

    @property
    def origin(self) -> str:
        """For messages: no path, no credentials."""
        parts = urlsplit(self.base_url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"

    def without_key(self, error: AgentError) -> AgentError:
        """Some servers quote the key that they refuse, and the run's error is shown to people."""
        if self.api_key == NO_KEY:
            return error
        return type(error)(error.message.replace(self.api_key, "…"), code=error.code)


class OpenAIAgent:
    """Answers with the model of an OpenAI-compatible server.

    The environment names it: `OPENAI_BASE_URL`, `OPENAI_API_KEY`, `KODA_OPENAI_MODEL`,
    `KODA_SYSTEM_PROMPT`; an argument takes the place of its variable. It is read anew for each
    answer, so that a missing key fails a run and not the start.

    This agent offers no tools. A model that calls one all the same is shown doing so, each
    call followed by its failure, and the answer ends as the model ended it.
    """

    cooperative = True

    def __init__(
        self,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        model: str | None = None,
        system_prompt: str | None = None,
    ) -> None:
        self._given = {
            "OPENAI_BASE_URL": base_url,
            "OPENAI_API_KEY": api_key,
            "KODA_OPENAI_MODEL": model,
            "KODA_SYSTEM_PROMPT": system_prompt,
        }
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, openai.AsyncOpenAI]
        self._clients = WeakKeyDictionary()

    async def respond(self, turn: Turn) -> AsyncIterator[str | Event]:
        """Streams the answer. Stopping it, by `aclose` or cancellation, closes the connection.

        Raises `TransientError` for a lost connection, a time-out, statuses 408, 409, 429, 5xx
        and a stream that was cut; `PermanentError` for everything else. `code` is the
        provider's where it gave one.
        """
        endpoint = self._endpoint()
        stream = ChatStream()
        async with self._asked(endpoint, turn) as response, _body(response) as body:
            while (piece := await _next(body, endpoint, ended=stream.ended)) is not None:
                for event in stream.feed(piece):
                    yield event
                if stream.done:
                    break
            media_type = response.headers.get("content-type", "event-stream")
        if stream.silent and "event-stream" not in media_type:
            raise PermanentError(
                f"{endpoint.origin} answered with {media_type} and not with an event stream: "
                "is OPENAI_BASE_URL that of a compatible API (it often ends in /v1)?",
                code="not_a_stream",
            )
        for event in stream.close():
            yield event

    def _endpoint(self) -> Endpoint:
        base_url = self._setting("OPENAI_BASE_URL") or DEFAULT_BASE_URL
        if not base_url.startswith(("http://", "https://")):
            raise PermanentError(
                "OPENAI_BASE_URL must begin with http:// or https://.", code="bad_base_url"
            )
        api_key = self._setting("OPENAI_API_KEY")
        if not api_key and not _is_local(base_url):
            raise PermanentError(
                "The openai agent needs a key: set OPENAI_API_KEY, or let OPENAI_BASE_URL point "
                "to a local server that needs none.",
                code="missing_key",
            )
        model = self._setting("KODA_OPENAI_MODEL")
        if not model:
            raise PermanentError(
                "The openai agent needs a model: set KODA_OPENAI_MODEL.", code="missing_model"
            )
        prompt = self._setting("KODA_SYSTEM_PROMPT")
        return Endpoint(base_url, api_key or NO_KEY, model, prompt)

    def _setting(self, variable: str) -> str:
        given = self._given[variable]
        return (os.environ.get(variable, "") if given is None else given).strip()

    @asynccontextmanager
    async def _asked(self, endpoint: Endpoint, turn: Turn) -> AsyncIterator[Response]:
        client = self._client().copy(base_url=endpoint.base_url, api_key=endpoint.api_key)
        request = client.chat.completions.with_streaming_response.create(
            model=endpoint.model,
            messages=_messages(endpoint, turn),
            stream=True,
            stream_options={"include_usage": True},
        )
        try:
            async with cast(AbstractAsyncContextManager[Response], request) as response:
                yield response
        except openai.APIError as error:
            raise endpoint.without_key(_mapped(error, endpoint)) from error

    def _client(self) -> openai.AsyncOpenAI:
        """One per event loop: making one reads all root certificates (tens of milliseconds)."""
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            self._clients[loop] = openai.AsyncOpenAI(
                api_key=NO_KEY,
                base_url=DEFAULT_BASE_URL,
                max_retries=0,  # the worker retries
                timeout=openai.Timeout(READ_TIMEOUT, connect=CONNECT_TIMEOUT),
            )
        return self._clients[loop]


def _body(response: Response) -> aclosing[AsyncGenerator[bytes]]:
    return aclosing(cast(AsyncGenerator[bytes], response.iter_bytes()))


async def _next(body: AsyncIterator[bytes], endpoint: Endpoint, *, ended: bool) -> bytes | None:
    """The next bytes, or None at the end. Once the answer has ended, nothing is an error."""
    try:
        async with asyncio.timeout(TAIL_WAIT if ended else None):
            return await anext(body, None)
    except Exception as error:  # of whichever HTTP library the client brings
        if ended:
            return None
        raise TransientError(
            f"The connection to {endpoint.origin} broke in mid-answer ({type(error).__name__}).",
            code="stream_cut",
        ) from error


def _messages(endpoint: Endpoint, turn: Turn) -> list[ChatCompletionMessageParam]:
    messages: list[ChatMessage] = []
    if endpoint.system_prompt:
        messages.append({"role": "system", "content": endpoint.system_prompt})
    messages.extend(turn.history)
    messages.extend({"role": "user", "content": text} for text in turn.inputs)
    return cast(list[ChatCompletionMessageParam], messages)


def _mapped(error: openai.APIError, endpoint: Endpoint) -> AgentError:
    if isinstance(error, openai.APITimeoutError):
        return TransientError(f"{endpoint.origin} did not answer in time.", code="timeout")
    if isinstance(error, openai.APIConnectionError):
        return TransientError(f"{endpoint.origin} cannot be reached.", code="connection_error")
    if isinstance(error, openai.APIStatusError):
        return status_error(error.status_code, error.body, error.message)
    return PermanentError(error.message, code=error.code or "provider_error")


def _is_local(base_url: str) -> bool:
    """Loopback, a private address, or a name without dots: servers that often need no key."""
    host = urlsplit(base_url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return "." not in host or host.endswith((".local", ".internal", ".localhost"))
