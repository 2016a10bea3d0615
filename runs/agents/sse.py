"""Server-sent events out of raw bytes."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_LINE_END = re.compile(rb"\r\n|\r|\n")
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One dispatched event; `name` and `id` are empty unless it said `event:` and `id:`."""

    name: str
    data: str
    id: str = ""


class SSEDecoder:
    """Cuts the bytes of an event stream, however they arrive, into events.

    As in the WHATWG specification: lines end with LF, CR or CRLF and with nothing else, a
    byte order mark may come first, an event without data is none, and neither is one that the
    end of the stream cut short. Bytes are decoded line by line, so that no cut can fall into a
    character. An id counts for its own event only; `retry` is not kept.
    """

    def __init__(self) -> None:
        self._lines: list[bytes] = []  # the pieces of the line that is not complete yet
        self._after_cr = False
        self._first = True
        self._name = ""
        self._id = ""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> Iterator[ServerEvent]:
        """The events that `chunk` completes. Exhaust it before the next call."""
        for line in self._split(chunk):
            event = self._take(line)
            if event is not None:
                yield event

    def _split(self, chunk: bytes) -> Iterator[bytes]:
        if self._after_cr and chunk.startswith(b"\n"):  # the LF of a CRLF cut in two
            chunk = chunk[1:]
            self._after_cr = False
        if not chunk:
            return
        self._after_cr = chunk.endswith(b"\r")
        *complete, rest = _LINE_END.split(chunk)
        for end in complete:
            yield b"".join([*self._lines, end])
            self._lines.clear()
        if rest:
            self._lines.append(rest)

    def _take(self, line: bytes) -> ServerEvent | None:
        if self._first:
            line = line.removeprefix(_BOM)
            self._first = False
        if not line:
            return self._dispatch()
        name, _, value = line.partition(b":")
        text = value.removeprefix(b" ").decode("utf-8", "replace")
        if name == b"data":
            self._data.append(text)
        elif name == b"event":
            self._name = text
        elif name == b"id":
            self._id = text
        return None

    def _dispatch(self) -> ServerEvent | None:
        event = ServerEvent(self._name, "\n".join(self._data), self._id)
        self._name = self._id = ""
        self._data.clear()
        return event if event.data else None
