"""What callers give, as it is stored: checked, and cleaned of what no database or browser takes."""

import hashlib
import json
from typing import Any, cast

from runs import conf
from runs.agents.registry import agent_paths
from runs.errors import InvalidMetadata, InvalidText, UnknownAgent
from runs.sanitize import UncleanValue, clean_json, clean_text


def text(value: str) -> str:
    """Raises InvalidText for an empty or a too long one."""
    cleaned = clean_text(value)
    longest = conf.get().max_text
    if not cleaned.strip():
        raise InvalidText("the text is empty")
    if len(cleaned) > longest:
        raise InvalidText(f"the text has {len(cleaned)} characters; {longest} is the limit")
    return cleaned


def metadata(value: dict[str, Any]) -> dict[str, Any]:
    """Raises InvalidMetadata for what is not JSON."""
    try:
        return cast(dict[str, Any], clean_json(value))
    except UncleanValue as error:
        raise InvalidMetadata(f"the metadata cannot be stored: {error}") from None


def agent(name: str) -> str:
    """Raises UnknownAgent."""
    if name not in agent_paths(conf.get().agents):
        raise UnknownAgent(f"no agent is called {name!r}")
    return name


def fingerprint(**body: object) -> str:
    """Equal for equal requests: what an idempotency key is held against."""
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
