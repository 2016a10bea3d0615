"""Asking the scripted model server through the `openai` agent, and what comes back."""

import json

import pytest

from runs.agents import AgentError, Event, Turn
from runs.agents.openai import OpenAIAgent
from tests.stub_model import StubModel, delta


def agent_of(stub: StubModel) -> OpenAIAgent:
    return OpenAIAgent(base_url=stub.base_url, model="m")


def turn(*inputs: str) -> Turn:
    return Turn("r1", 1, list(inputs or ["hi"]))


async def ask(stub: StubModel) -> list[str | Event]:
    return [item async for item in agent_of(stub).respond(turn())]


async def ask_failing(stub: StubModel) -> tuple[list[str | Event], AgentError]:
    """What was said before the error, and the error."""
    items: list[str | Event] = []
    try:
        async for item in agent_of(stub).respond(turn()):
            items.append(item)  # noqa: PERF401  (a comprehension would lose them)
    except AgentError as error:
        return items, error
    pytest.fail("the agent was expected to fail")


def text_of(items: list[str | Event]) -> str:
    return "".join(item for item in items if isinstance(item, str))


def raw(text: str) -> bytes:
    """A delta whose control characters are not escaped."""
    escaped = delta(text)
    for character in text:
        if ord(character) < 0x20:
            escaped = escaped.replace(json.dumps(character)[1:-1].encode(), character.encode())
    return escaped
