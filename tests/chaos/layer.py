"""A channel layer that misbehaves while a file says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from koda.selfcheck.layer import DisorderlyLayer, Message
from tests.live_client import TERMINAL


class SwitchedLayer(DisorderlyLayer):
    """Passes on what it is given, unless the file at `switch` holds one of these words:

    `disorder`: events are lost, repeated and reordered. `tails`: a run's last message is lost.
    """

    def __init__(self, *, inner: Mapping[str, Any], seed: int, switch: str) -> None:
        super().__init__(inner=inner, seed=seed)
        self._switch = Path(switch)

    async def group_send_many(self, messages: Sequence[tuple[str, Message]]) -> None:
        match self._switch.read_text():
            case "disorder":
                await super().group_send_many(messages)
            case "tails":
                await self._pass_on(
                    [(to, message) for to, message in messages if not last(message)]
                )
            case _:
                await self._pass_on(messages)


def last(message: Message) -> bool:
    """Whether it carries the end of a run."""
    return any(type in TERMINAL for _, type, _ in message.get("events", ()))
