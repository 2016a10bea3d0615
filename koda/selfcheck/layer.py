"""The channel layer at its worst: it loses, repeats and reorders, as it may, but all the time."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from django.utils.module_loading import import_string

logger = logging.getLogger(__name__)

LOST = 0.08
REPEATED = 0.08
"""Shares of all events."""

BATCH = (3, 6)
"""So few and so many events wait to be sent in another order."""

HOLD = 0.15
"""Seconds of silence after which fewer are sent too."""

Message = dict[str, Any]


class Disorder:
    """What becomes of the events of one group. Pure, and the same every time for a seed."""

    def __init__(self, seed: int) -> None:
        self._fate = Random(seed)
        self._order = Random(seed)
        self._size = self._order.randint(*BATCH)
        self._again: list[Message] = []
        self.held: list[Message] = []

    def take(self, message: Message) -> list[Message]:
        """Take one event's message; return those to send now."""
        fate = self._fate.random()
        if fate >= LOST:
            self.held.append(message)
        if fate >= 1 - REPEATED:
            self._again.append(message)
        return self.release() if len(self.held) >= self._size else []

    def release(self) -> list[Message]:
        """What was held, never in the order of its arrival; repetitions are left for later."""
        arrived, self.held, self._again = self.held, self._again, []
        self._size = self._order.randint(*BATCH)
        shuffled = self._order.sample(arrived, len(arrived))
        return shuffled if shuffled != arrived else arrived[::-1]


class DisorderlyLayer:
    """Wraps any channel layer. Events suffer; probes, nudges and the rest pass as they are.

    `inner` is an entry of CHANNEL_LAYERS. The log gets every number in the order it was sent in.
    """

    def __init__(self, *, inner: Mapping[str, Any], seed: int) -> None:
        self._inner = import_string(inner["BACKEND"])(**inner.get("CONFIG", {}))
        self._groups: defaultdict[str, Disorder] = defaultdict(lambda: Disorder(seed))
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._sending: set[asyncio.Task[None]] = set()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - channel layers share no base class
        return getattr(self._inner, name)

    async def group_send(self, group: str, message: Message) -> None:
        await self.group_send_many([(group, message)])

    async def group_send_many(self, messages: Sequence[tuple[str, Message]]) -> None:
        for group, message in messages:
            if message["type"] == "koda.events" and "events" in message:
                await self._disturb(group, message)
            else:
                await self._inner.group_send(group, message)

    async def _disturb(self, group: str, message: Message) -> None:
        disorder = self._groups[group]
        for event in message["events"]:
            single = {**message, "next": event[0] + 1, "events": [event]}
            await self._send(group, disorder.take(single))

    async def _send(self, group: str, released: list[Message]) -> None:
        if released:
            await self._pass_on([(group, message) for message in released])
            numbers = " ".join(str(message["events"][0][0]) for message in released)
            logger.info("run %s: sent %s", released[0]["run"], numbers)
        self._set_timer(group)

    async def _pass_on(self, messages: Sequence[tuple[str, Message]]) -> None:
        """As `streaming.groups.send` does it: in one round trip where the layer can."""
        send_many = getattr(self._inner, "group_send_many", None)
        if send_many is not None:
            await send_many(messages)
            return
        for group, message in messages:
            await self._inner.group_send(group, message)

    def _set_timer(self, group: str) -> None:
        """What is held leaves in time, even if nothing more comes."""
        if timer := self._timers.pop(group, None):
            timer.cancel()
        if self._groups[group].held:
            loop = asyncio.get_running_loop()
            self._timers[group] = loop.call_later(HOLD, self._time_is_up, group)

    def _time_is_up(self, group: str) -> None:
        released = self._groups[group].release()
        task = asyncio.get_running_loop().create_task(self._send(group, released))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)
