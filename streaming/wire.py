"""Server-sent events as bytes, and the arithmetic of resuming. Pure."""

import re
from collections.abc import Mapping

from runs.jsontext import dumps

RETRY_MS = 2000
PRELUDE = f"retry: {RETRY_MS}\n\n: koda\n\n".encode()
"""The first bytes of every stream: they leave at once, so that proxies and clients see it open."""

PING = b": ping\n\n"

_LAST_ID = re.compile(r"[0-9]{1,18}", re.ASCII)


def last_event_id(value: str | None) -> int | None:
    """The last number a client received; None for a first connection.

    Clients control this: only ASCII digits, at most 18 of them, count.
    """
    if value is None or not _LAST_ID.fullmatch(value):
        return None
    return int(value)


def resume_from(last_id: int | None) -> int:
    """The number of the first event to deliver. The only place that adds the one."""
    return 0 if last_id is None else last_id + 1


def frame(*, seq: int | None, event: str | None, data: Mapping[str, object]) -> bytes:
    """One event. Without `seq` the client's last id stays, without `event` it is a `message`.

    JSON escapes CR and LF, the only line ends of the format.
    """
    id_line = b"" if seq is None else b"id: %d\n" % seq
    event_line = b"" if event is None else b"event: %s\n" % _one_line(event).encode()
    return b"%s%sdata: %s\n\n" % (id_line, event_line, dumps(data))


def error(code: str, message: str) -> bytes:
    """Ends this connection, not the run: the client comes back with its last id."""
    return frame(seq=None, event="error", data={"code": code, "message": message})


def _one_line(text: str) -> str:
    return text.replace("\r", " ").replace("\n", " ")
