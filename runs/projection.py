"""What `reducer.fold` makes of a log, made piece by piece and in time linear in its length."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from runs.events import TERMINAL_TYPES, Data, EventType, StoredEvent, size_of
from runs.reducer import Row, State, Tool, initial_agent_state, reduce_agent_event, to_agent_event

MAX_SNAPSHOT = 4 * 1024 * 1024
"""Characters. A state that is larger is not sent in one piece: whoever wants it reads the log."""

BEGIN_ANEW = frozenset({EventType.RUN_RESTARTED, EventType.SNAPSHOT})
"""Types after which the text is what the event says and nothing before it counts."""

TOOL_ENDS = frozenset({EventType.TOOL_COMPLETED, EventType.TOOL_FAILED})


class Projection:
    """A log folded as it grows. Its terminal event is left out: that is always sent by itself.

    The reducer would copy the whole text for every token; so it gets to see an empty one, and
    what it adds to that is kept in pieces until somebody asks.
    """

    def __init__(self, run_id: str) -> None:
        self._state = initial_agent_state(run_id)
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self.size = 0
        """Roughly how many characters the state has."""
        self.ended_tools: list[str] = []
        """The tools that have a result, in the order in which they got it."""

    @property
    def run_id(self) -> str:
        return self._state["runId"]

    @property
    def next_seq(self) -> int:
        """The number of the first event that is not in it."""
        return self._state["lastSequence"]  # sequences count from 1

    @property
    def too_large(self) -> bool:
        return self.size > MAX_SNAPSHOT

    def extend(self, rows: Iterable[Row]) -> None:
        """Take the next rows of the log. Raises ReducerError for a row that does not fit."""
        for row in rows:
            self._add(row.seq, row.type, row.data)

    def state(self) -> State:
        """The state so far; not to be changed."""
        self._text[:] = ["".join(self._text)]
        whole: State = {**self._state, "text": self._text[0]}
        if "reasoning" in whole:
            self._reasoning[:] = ["".join(self._reasoning)]
            whole["reasoning"] = self._reasoning[0]
        return whole

    def snapshot(self) -> StoredEvent:
        """The event that stands for all rows so far, of which there must be one."""
        return StoredEvent(self.next_seq - 1, EventType.SNAPSHOT, cast(Data, self.state()))

    def _add(self, seq: int, type: str, data: Mapping[str, Any]) -> None:
        if type in TERMINAL_TYPES:
            return
        event = to_agent_event(self._state["runId"], seq, type, data)
        after = reduce_agent_event(self._state, event)
        if after is self._state:
            return
        if type in BEGIN_ANEW:
            self._text.clear()
            self._reasoning.clear()
            self.size = 0
            self.ended_tools = [id for id, tool in after["tools"].items() if _ended(tool)]
        elif type in TOOL_ENDS:
            self.ended_tools.append(data["tool_call_id"])
        self.size += size_of(data)
        self._text.append(after["text"])
        after["text"] = ""
        if "reasoning" in after:
            self._reasoning.append(after["reasoning"])
            after["reasoning"] = ""
        self._state = after


def _ended(tool: Tool) -> bool:
    return tool["status"] != "running"
