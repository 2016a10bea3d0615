"""The vocabulary of the log: what a row of `messages` can say, and what a log adds up to."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

Data = dict[str, Any]
"""An event's payload: a JSON object."""


class EventType(StrEnum):
    RUN_STARTED = "run_started"
    DELTA = "delta"
    REASONING = "reasoning"
    TOOL_STARTED = "tool_started"
    TOOL_COMPLETED = "tool_completed"
    TOOL_FAILED = "tool_failed"
    RUN_RESTARTED = "run_restarted"
    RUN_COMPLETED = "run_completed"
    RUN_FAILED = "run_failed"
    RUN_CANCELLED = "run_cancelled"
    SNAPSHOT = "snapshot"


TERMINAL_TYPES = frozenset({EventType.RUN_COMPLETED, EventType.RUN_FAILED, EventType.RUN_CANCELLED})
"""A log's last event is one of these, and nothing follows it."""


class RestartReason(StrEnum):
    MERGED = "merged"
    RETRY = "retry"
    RECOVERED = "recovered"


class Event(NamedTuple):
    """A fact without its number yet."""

    type: str
    data: Data


Said = Event | str
"""What waits for its number: an event, or clean text, which becomes a delta with others'."""


class StoredEvent(NamedTuple):
    """A numbered fact, as it stands in the log."""

    seq: int
    type: str
    data: Data

    @property
    def terminal(self) -> bool:
        return self.type in TERMINAL_TYPES


def size_of(value: object) -> int:
    """Roughly how many characters a payload has."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(map(size_of, value.values()))
    if isinstance(value, list):
        return sum(map(size_of, value))
    return 8


def numbered(seq: int, new: Sequence[Event]) -> list[StoredEvent]:
    """`new` as the stretch of a log that begins with number `seq`."""
    return [StoredEvent(seq + i, event.type, event.data) for i, event in enumerate(new)]


def run_started(*, attempt: int, agent: str) -> Event:
    return Event(EventType.RUN_STARTED, {"attempt": attempt, "agent": agent})


def delta(text: str) -> Event:
    return Event(EventType.DELTA, {"text": text})


def reasoning(text: str) -> Event:
    return Event(EventType.REASONING, {"text": text})


def tool_started(*, tool_call_id: str, name: str, input: object) -> Event:
    data = {"tool_call_id": tool_call_id, "name": name, "input": input}
    return Event(EventType.TOOL_STARTED, data)


def tool_completed(*, tool_call_id: str, output: object) -> Event:
    return Event(EventType.TOOL_COMPLETED, {"tool_call_id": tool_call_id, "output": output})


def tool_failed(*, tool_call_id: str, error: str) -> Event:
    return Event(EventType.TOOL_FAILED, {"tool_call_id": tool_call_id, "error": error})


def run_restarted(*, reason: RestartReason, attempt: int, inputs: Sequence[str]) -> Event:
    data = {"reason": str(reason), "attempt": attempt, "inputs": list(inputs)}
    return Event(EventType.RUN_RESTARTED, data)


def run_completed(*, finish_reason: str, usage: Data | None) -> Event:
    return Event(EventType.RUN_COMPLETED, {"finish_reason": finish_reason, "usage": usage})


def run_failed(*, code: str, message: str) -> Event:
    return Event(EventType.RUN_FAILED, {"code": code, "message": message})


def run_cancelled(*, reason: str) -> Event:
    return Event(EventType.RUN_CANCELLED, {"reason": reason})


@dataclass(slots=True)
class Fold:
    """What a log adds up to since its last restart: the text, and the tools still open."""

    parts: list[str] = field(default_factory=list)
    open_tools: dict[str, str] = field(default_factory=dict)
    """tool_call_id → name, in the order they were started."""

    @property
    def text(self) -> str:
        return "".join(self.parts)

    def apply(self, event: Event | StoredEvent) -> None:
        match event.type:
            case EventType.DELTA:
                self.parts.append(event.data["text"])
            case EventType.TOOL_STARTED:
                self.open_tools[event.data["tool_call_id"]] = event.data["name"]
            case EventType.TOOL_COMPLETED | EventType.TOOL_FAILED:
                self.open_tools.pop(event.data["tool_call_id"], None)
            case EventType.RUN_RESTARTED:
                self.parts.clear()
                self.open_tools.clear()

    def text_with(self, more: Iterable[Event]) -> str:
        """The text, once these have happened as well."""
        ahead = Fold([*self.parts])
        for event in more:
            ahead.apply(event)
        return ahead.text

    def interrupted_tools(self, error: str) -> list[Event]:
        """A `tool_failed` for every tool that a rerun or a stop interrupts."""
        return [tool_failed(tool_call_id=id, error=error) for id in self.open_tools]


def fold(log: Iterable[Event | StoredEvent]) -> Fold:
    folded = Fold()
    for event in log:
        folded.apply(event)
    return folded
