"""What an agent is given and what it may yield.

An agent is an async generator function of one argument, the `Turn`. It yields text (`str`)
and the events below, in the order in which a reader shall see them. It is told to stop by
`asyncio.CancelledError`. It fails by raising: `TransientError` is tried again while tries
remain, anything else ends the run.

Each call runs on a thread and event loop of its own, so that an agent that blocks hurts nobody
else. One that never blocks may say so with an attribute `cooperative = True` (on the function,
the class or the instance) and saves the hand-over.
"""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Literal, Required, TypeAlias, TypedDict


class FunctionCall(TypedDict):
    """The function part of a tool call; `arguments` is JSON text."""

    name: str
    arguments: str


class ToolCall(TypedDict):
    """One call in an assistant message, answered by a `tool` message with the same id."""

    id: str
    type: Literal["function"]
    function: FunctionCall


class ChatMessage(TypedDict, total=False):
    """A message in OpenAI's chat form; `content` is null only beside `tool_calls`."""

    role: Required[Literal["system", "user", "assistant", "tool"]]
    content: str | None
    tool_calls: list[ToolCall]
    tool_call_id: str


@dataclass(frozen=True)
class Turn:
    """One try at answering.

    `inputs` are the user's messages of this run, corrections included, oldest first.
    `history` is what came before them, tool calls and their results always paired.
    `attempt` grows with every try: with `run_id` and a tool call's id it makes the key by
    which a tool may recognise work that it has done already.
    """

    run_id: str
    attempt: int
    inputs: list[str]
    history: list[ChatMessage] = field(default_factory=list)
    user: object | None = None
    metadata: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Reasoning:
    """Thinking text, shown apart from the answer."""

    text: str


@dataclass(frozen=True)
class ToolStarted:
    """A tool call begins. `tool_call_id` is unique within the try."""

    tool_call_id: str
    name: str
    input: object = field(default_factory=dict)


@dataclass(frozen=True)
class ToolCompleted:
    """The started call of this id has returned `output`."""

    tool_call_id: str
    output: object = None


@dataclass(frozen=True)
class ToolFailed:
    """The started call of this id has failed; the run goes on."""

    tool_call_id: str
    error: str


@dataclass(frozen=True)
class Usage:
    """Tokens of the whole try; a later one replaces an earlier one."""

    input_tokens: int
    output_tokens: int


@dataclass(frozen=True)
class Finish:
    """Why the model stopped, in its own word (`stop`, `length`, …)."""

    reason: str


Event: TypeAlias = Reasoning | ToolStarted | ToolCompleted | ToolFailed | Usage | Finish
Agent: TypeAlias = Callable[[Turn], AsyncIterator[str | Event]]


class AgentError(Exception):
    """An agent could not answer.

    `code` is one word for programs (the provider's, where it gave one), the message a
    sentence for people. Raise one of the two subclasses.
    """

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code


class TransientError(AgentError):
    """Another try may succeed: a lost connection, a busy provider."""


class PermanentError(AgentError):
    """Another try would fail in the same way."""
