"""Agents that do harm to the process they run in."""

import os
import signal
from collections.abc import AsyncIterator

from runs.agents import Event as AgentEvent
from runs.agents import ToolStarted, Turn


async def deadly(turn: Turn) -> AsyncIterator[str | AgentEvent]:
    """Has a tool that takes the whole process with it."""
    yield "Careful. "
    yield ToolStarted(f"c{turn.attempt}", "self_destruct", {})
    yield "Now. "
    os.kill(os.getpid(), signal.SIGKILL)
