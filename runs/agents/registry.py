"""Names → agents, from dotted paths."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import cast

from runs.agents.base import Agent

SHIPPED: Mapping[str, str] = {
    "demo": "runs.agents.demo.demo",
    "openai": "runs.agents.openai.OpenAIAgent",
}
"""Always there; a configured agent of the same name takes its place."""


class AgentConfigError(Exception):
    """A configured agent cannot be used; the message names it, its path and the reason."""


@dataclass(frozen=True)
class LoadedAgent:
    """An agent that can be asked. `description` is one line, empty when there is none."""

    name: str
    description: str
    respond: Agent
    cooperative: bool = False
    """The agent promises never to block the event loop it is called on."""


def agent_paths(paths: Mapping[str, str]) -> dict[str, str]:
    """Every agent there is: the shipped ones, and those of `paths` on top."""
    return {**SHIPPED, **paths}


def load_agents(paths: Mapping[str, str]) -> dict[str, LoadedAgent]:
    """Imports the shipped agents and those of `paths` (name → dotted path) on top.

    A path leads to an async generator function, or to a class (called without arguments)
    or an object with such a method `respond`. Raises `AgentConfigError`.
    """
    return {name: _load(name, path) for name, path in agent_paths(paths).items()}


def _load(name: str, path: str) -> LoadedAgent:
    try:
        target = _resolve(path)
        if inspect.isasyncgenfunction(target):
            return LoadedAgent(name, _summary(target), cast(Agent, target), _promises(target))
        owner = _instantiate(target) if inspect.isclass(target) else target
        respond = _respond_of(owner)
    except AgentConfigError as error:
        raise AgentConfigError(f"Agent '{name}' ({path}): {error}") from error.__cause__
    description = _summary(type(owner)) or _summary(respond)
    return LoadedAgent(name, description, respond, _promises(owner))


def _promises(target: object) -> bool:
    return bool(getattr(target, "cooperative", False))


def _resolve(path: str) -> object:
    module_path, _, attribute = path.rpartition(".")
    if not all(part.isidentifier() for part in path.split(".")) or not module_path:
        raise AgentConfigError("this is not a dotted path like shop.agents.support.")
    try:
        module = import_module(module_path)
    except ModuleNotFoundError as error:
        raise AgentConfigError(f"there is no module {error.name}.") from error
    except Exception as error:  # whatever a foreign module raises while it is imported
        raise AgentConfigError(f"importing {module_path} raised {_said(error)}") from error
    try:
        return cast(object, getattr(module, attribute))
    except AttributeError:
        raise AgentConfigError(f"{module_path} has no attribute {attribute}.") from None


def _instantiate(cls: type) -> object:
    try:
        return cast(object, cls())
    except Exception as error:  # a foreign constructor
        raise AgentConfigError(f"{cls.__name__}() raised {_said(error)}") from error


def _respond_of(owner: object) -> Agent:
    respond = getattr(owner, "respond", None)
    if respond is None and not callable(owner):
        raise AgentConfigError(f"its type {type(owner).__name__} has no method respond(turn).")
    if not inspect.isasyncgenfunction(respond):
        what = "this" if respond is None else f"{type(owner).__name__}.respond"
        raise AgentConfigError(
            f"{what} is not an async generator function (async def with a yield)."
        )
    return cast(Agent, respond)


def _summary(documented: object) -> str:
    lines = (inspect.getdoc(documented) or "").splitlines()
    return lines[0].strip() if lines else ""


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".rstrip(".: ") + "."
