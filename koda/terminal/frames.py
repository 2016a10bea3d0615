"""The native stream as a client reads it: numbered events out of bytes. Pure."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from runs.agents.sse import SSEDecoder
from runs.events import TERMINAL_TYPES


@dataclass(frozen=True, slots=True)
class Received:
    """One event. Only `error`, which ends a connection and not the run, has no number."""

    id: int | None
    type: str
    data: dict[str, Any]

    @property
    def terminal(self) -> bool:
        return self.type in TERMINAL_TYPES


class Frames:
    """The events of one connection, out of its bytes, however they arrive."""

    def __init__(self) -> None:
        self._decoder = SSEDecoder()

    def feed(self, chunk: bytes) -> Iterator[Received]:
        """The events that `chunk` completes. Exhaust it before the next call."""
        for event in self._decoder.feed(chunk):
            if event.name:
                id = int(event.id) if event.id else None
                yield Received(id, event.name, json.loads(event.data))
