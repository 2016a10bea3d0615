"""Everything a module with an agent in it needs to import. Works without Django set up."""

from runs.agents.base import (
    Agent,
    AgentError,
    ChatMessage,
    Event,
    Finish,
    PermanentError,
    Reasoning,
    ToolCompleted,
    ToolFailed,
    ToolStarted,
    TransientError,
    Turn,
    Usage,
)

__all__ = [
    "Agent",
    "AgentError",
    "ChatMessage",
    "Event",
    "Finish",
    "PermanentError",
    "Reasoning",
    "ToolCompleted",
    "ToolFailed",
    "ToolStarted",
    "TransientError",
    "Turn",
    "Usage",
]
