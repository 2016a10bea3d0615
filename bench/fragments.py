"""What every system streams: numbered, stamped fragments. Needs nothing but Python.

A fragment is `NUMBER@SECONDS;`, the seconds of the monotonic clock at which it was made; the last
one of a run ends with `!`. Systems may join fragments, so each carries all that a check needs.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from typing import Self


@dataclass(frozen=True)
class Plan:
    """One run: `count` fragments at `rate` a second (0: as fast as they are taken).

    Begins when the monotonic clock shows `at`. A run without a rate ends early once it has taken
    `limit` seconds. `apart` asks Koda for events that it may not join.
    """

    count: int
    rate: float = 0.0
    at: float = 0.0
    limit: float = 60.0
    apart: bool = False

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        return cls(**json.loads(text))


async def fragments(plan: Plan) -> AsyncIterator[str]:
    """The run's fragments, at its pace; one that is late makes no later one late."""
    clock = time.monotonic
    await asyncio.sleep(max(0.0, plan.at - clock()))
    stop = clock() + plan.limit
    for number in range(plan.count):
        if plan.rate:
            wait = plan.at + number / plan.rate - clock()
            if wait > 0:
                await asyncio.sleep(wait)
        now = clock()
        last = number == plan.count - 1 or (not plan.rate and now > stop)
        yield f"{number}@{now:.6f}{'!' if last else ';'}"
        if last:
            return


def frame(number: int, text: str) -> bytes:
    """A fragment as a server-sent event, as Koda would send it."""
    return f'id: {number}\nevent: delta\ndata: {{"text":"{text}"}}\n\n'.encode()
