"""The shipped demo agent: customer support for orders that do not exist. It needs no key."""

import asyncio
import re
from collections.abc import AsyncIterator

from runs.agents.base import Event, Finish, ToolCompleted, ToolStarted, Turn, Usage
from runs.agents.demo_replies import reply_to

TOOL_FRAGMENTS = 8
"""The tool takes as long as this many fragments."""

_WIDE = r"\u3000-\u9fff\uff00-\uffef"
_FRAGMENT = re.compile(rf"[{_WIDE}]{{1,2}}|[^\s{_WIDE}]+\s*|\s+")
"""A word with the space after it, or two Chinese characters."""


class DemoAgent:
    """A demo of customer support: made-up orders, no key, no model.

    Deterministic: the answer is a function of all inputs. It asks one tool, `find_order`, and
    types about 25 fragments a second for some four seconds, so that there is time to reload
    the page or to send a correction. `fragment_interval` is in seconds.
    """

    cooperative = True

    def __init__(self, fragment_interval: float = 0.04) -> None:
        self._interval = fragment_interval

    async def respond(self, turn: Turn) -> AsyncIterator[str | Event]:
        """Text, the tool, text, then `Usage` (one token a fragment) and `Finish`."""
        reply = reply_to(turn.inputs, turn.history)
        opening, rest = _FRAGMENT.findall(reply.opening), _FRAGMENT.findall(reply.rest)
        for fragment in opening:
            await asyncio.sleep(self._interval)
            yield fragment
        yield ToolStarted("find_order-1", "find_order", {"order": reply.order})
        await asyncio.sleep(self._interval * TOOL_FRAGMENTS)
        yield ToolCompleted("find_order-1", reply.facts)
        for fragment in rest:
            await asyncio.sleep(self._interval)
            yield fragment
        read = sum(len(_FRAGMENT.findall(text)) for text in turn.inputs)
        yield Usage(input_tokens=read, output_tokens=len(opening) + len(rest))
        yield Finish("stop")


demo = DemoAgent()
