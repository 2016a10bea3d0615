"""Agents for running systems. Each does what the metadata of its message says."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

from runs.agents import Event as AgentEvent
from runs.agents import PermanentError, Reasoning, ToolCompleted, ToolFailed, ToolStarted, Turn
from tests.waiting import until

GATE_PATIENCE = 100.0
HOSTILE = "a\r\nevent: done\rid: 999\ndata: x\n\n"


async def _gate(metadata: Mapping[str, object]) -> None:
    """Wait until the test opens the gate, if it has given one."""
    if path := metadata.get("gate"):
        await until(Path(str(path)).exists, f"somebody opening {path}", timeout=GATE_PATIENCE)


async def _pause(seconds: object) -> None:
    loop = asyncio.get_running_loop()
    due = loop.time() + float(str(seconds))
    await until(lambda: loop.time() >= due, "the pace", timeout=GATE_PATIENCE)


async def words(turn: Turn) -> AsyncIterator[str]:
    """`count` (10) words of `size` (0) characters or more, `pace` (0) seconds apart."""
    count, size = int(str(turn.metadata.get("count", 10))), int(str(turn.metadata.get("size", 0)))
    for number in range(count):
        if pace := turn.metadata.get("pace"):
            await _pause(pace)
        yield f"w{number} ".rjust(size, "x")


async def rounds(turn: Turn) -> AsyncIterator[str | AgentEvent]:
    """`rounds` (10) times text and a tool: three events each, which nothing can join.

    Waits for the gate before round `hold_at` (5).
    """
    for number in range(int(str(turn.metadata.get("rounds", 10)))):
        if number == turn.metadata.get("hold_at", 5):
            await _gate(turn.metadata)
        yield f"word {number} "
        yield ToolStarted(f"c{number}", "look_up", {"round": number})
        yield ToolCompleted(f"c{number}", {"found": [number, "你好 😀"]})


async def patient(turn: Turn) -> AsyncIterator[str | AgentEvent]:
    """Starts, waits for the gate unless somebody has corrected the question, and answers it."""
    yield "One moment. "
    yield ToolStarted("t1", "wait", {})
    if len(turn.inputs) == 1:
        await _gate(turn.metadata)
    yield ToolCompleted("t1", None)
    yield f"You said: {' / '.join(turn.inputs)}"


async def silent(turn: Turn) -> AsyncIterator[str]:
    """Says nothing until the gate opens."""
    await _gate(turn.metadata)
    yield "At last."


async def scribe(turn: Turn) -> AsyncIterator[str]:
    """Writes `says`, `times` (1) over with {n} as the number, `piece` (10) characters at a time.

    Waits for the gate half way.
    """
    says, times = str(turn.metadata.get("says", "")), int(str(turn.metadata.get("times", 1)))
    piece = int(str(turn.metadata.get("piece", 10)))
    text = "".join(says.replace("{n}", str(number)) for number in range(times))
    for begin in range(0, len(text), piece):
        if begin <= len(text) // 2 < begin + piece:
            await _gate(turn.metadata)
        yield text[begin : begin + piece]


async def failing(turn: Turn) -> AsyncIterator[str]:
    """Breaks off with the provider's word for it."""
    yield "So far so good. "
    raise PermanentError("The model is overloaded.", code="overloaded")


async def hostile(turn: Turn) -> AsyncIterator[str | AgentEvent]:
    """Text that would like to be frames of its own, wherever there is text."""
    yield HOSTILE
    yield Reasoning(HOSTILE)
    yield ToolStarted("c1", HOSTILE, {HOSTILE: HOSTILE})
    yield ToolCompleted("c1", HOSTILE)
    yield ToolStarted("c2", HOSTILE, HOSTILE)
    yield ToolFailed("c2", HOSTILE)
    raise PermanentError(HOSTILE, code=HOSTILE)
