"""What a person at a terminal sees: the answer on stdout, everything about it on stderr."""

import json
import re
from typing import Any, Protocol

from koda.terminal.frames import Received

MAX_NOTE = 200
"""Characters of a note; tools may return megabytes."""

CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Out(Protocol):
    def write(self, text: str, /) -> object: ...

    def flush(self) -> None: ...


class Printer:
    """Writes the events of one run."""

    def __init__(self, out: Out, notes: Out) -> None:
        self._out = out
        self._notes = notes
        self._text = ""
        self._line_open = False
        self._tools: dict[str, str] = {}

    def show(self, received: Received) -> None:
        data = received.data
        match received.type:
            case "delta":
                self._say(data["text"])
            case "tool_started":
                self._tools[data["tool_call_id"]] = data["name"]
                self.note(f"{data['name']} {_json(data['input'])}")
            case "tool_completed":
                self.note(f"{self._name(data)} → {_json(data['output'])}")
            case "tool_failed":
                self.note(f"{self._name(data)} failed: {data['error']}")
            case "run_restarted":
                self.note(f"the answer starts again ({data['reason']})")
                self._text = ""
            case "snapshot":
                self._catch_up(data["text"])
            case "run_completed":
                self._end_line()
            case "run_failed":
                self.note(f"failed: {data['code']}: {data['message']}")
            case "run_cancelled":
                self.note(f"cancelled ({data['reason']})")

    def note(self, text: str) -> None:
        """A short line beside the answer."""
        self._end_line()
        line = printable(" ".join(text.split()))
        self._notes.write(f"[{line if len(line) <= MAX_NOTE else line[: MAX_NOTE - 1] + '…'}]\n")
        self._notes.flush()

    def _say(self, text: str) -> None:
        self._text += text
        if shown := printable(text):
            self._line_open = not shown.endswith("\n")
            self._out.write(shown)
            self._out.flush()

    def _catch_up(self, text: str) -> None:
        """The whole text so far: print what is new, or all of it if what was printed is void."""
        if not text.startswith(self._text):
            self.note("the answer starts again")
            self._text = ""
        self._say(text.removeprefix(self._text))

    def _end_line(self) -> None:
        if self._line_open:
            self._line_open = False
            self._out.write("\n")
            self._out.flush()

    def _name(self, data: dict[str, Any]) -> str:
        call = str(data["tool_call_id"])
        return self._tools.get(call, call)


def printable(text: str) -> str:
    """Without the control characters by which a model's text could take over the terminal."""
    return CONTROLS.sub("", text)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
