"""The native stream as a client reads it: numbered events out of bytes. Pure."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

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
    """Cuts the bytes of one connection into events, however they arrive."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> Iterator[Received]:
        """The events that `chunk` completes."""
        *blocks, self._rest = (self._rest + chunk).split(b"\n\n")
        for block in blocks:
            received = _event(block.decode())
            if received is not None:
                yield received


def _event(block: str) -> Received | None:
    """None for a comment or `retry`."""
    fields = dict(line.split(": ", 1) for line in block.split("\n") if ": " in line)
    if "event" not in fields or "data" not in fields:
        return None
    id = int(fields["id"]) if "id" in fields else None
    return Received(id, fields["event"], json.loads(fields["data"]))
