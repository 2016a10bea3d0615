"""The agent that Koda is measured with: `KODA_AGENTS=bench=bench.agent.bench`."""

from collections.abc import AsyncIterator
from typing import Any

from bench.fragments import Plan, fragments
from runs.agents import Event, Reasoning, Turn


async def bench(turn: Turn) -> AsyncIterator[str | Event]:
    """Streams what the message's metadata asks for."""
    wanted: Any = turn.metadata
    plan = Plan(**wanted)
    async for fragment in fragments(plan):
        yield Reasoning(fragment) if plan.apart else fragment


bench.cooperative = True  # type: ignore[attr-defined]  # never blocks, as the shipped agents
