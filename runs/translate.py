"""What an agent yields, as events of the log: cleaned, cut to size, and in a legal order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from runs import events
from runs.agents import Finish, Reasoning, ToolCompleted, ToolFailed, ToolStarted, Usage
from runs.events import Data, Event, Said
from runs.sanitize import (
    SPLIT_BYTES,
    TextCleaner,
    UncleanValue,
    clean_json,
    clean_text,
    is_clean,
    split_text,
)

SHORT = SPLIT_BYTES // 4
"""Characters of a text that is in no need of splitting, whatever they are."""


class AgentProtocolError(Exception):
    """The agent yielded something that makes no sense at this point; the message says what."""


@dataclass(slots=True)
class Translator:
    """Translates one try of an agent. Pure: items in, events out."""

    usage: Data | None = None
    finish_reason: str = "stop"
    _text: TextCleaner = field(default_factory=TextCleaner)
    _thought: TextCleaner = field(default_factory=TextCleaner)
    _open: dict[str, str] = field(default_factory=dict)
    _seen: set[str] = field(default_factory=set)

    def translate(self, item: object) -> Sequence[Said]:
        """What this item says: nothing, if it is an empty text, usage or a finish reason."""
        if type(item) is str and self._may_pass(item):
            return (item,)
        match item:
            case str():
                return [*self._thinking_ended(), *split_text(self._text.feed(item))]
            case Reasoning(text):
                return [*self._text_ended(), *_thoughts(self._thought.feed(text))]
            case ToolStarted():
                return [*self._all_ended(), self._started(item)]
            case ToolCompleted():
                return [*self._all_ended(), self._completed(item)]
            case ToolFailed(tool_call_id, error):
                return [*self._all_ended(), self._failed(tool_call_id, error)]
            case Usage(input_tokens, output_tokens):
                self.usage = {
                    "input_tokens": _count(input_tokens),
                    "output_tokens": _count(output_tokens),
                }
            case Finish(reason):
                self.finish_reason = clean_text(str(reason))[:100]
            case _:
                raise AgentProtocolError(
                    f"the agent yielded {type(item).__name__}, which is neither text nor an event"
                )
        return []

    def _may_pass(self, text: str) -> bool:
        """Whether it is as clean and short as almost every text, and nothing has to go before."""
        return (
            0 < len(text) <= SHORT
            and is_clean(text)
            and not self._text.held
            and not self._thought.held
        )

    def end(self) -> list[Said]:
        """Everything that is still open is closed before the run ends."""
        unanswered = [self._failed(id, "the agent ended without a result") for id in self._open]
        return [*self._all_ended(), *unanswered]

    def _started(self, item: ToolStarted) -> Event:
        id = clean_text(item.tool_call_id)
        if id in self._seen:
            raise AgentProtocolError(f"tool call {id!r} was started twice")
        self._seen.add(id)
        name = clean_text(item.name)
        self._open[id] = name
        try:
            given = clean_json(item.input)
        except UncleanValue as error:
            given = {"unrepresentable": str(error)}
        return events.tool_started(tool_call_id=id, name=name, input=given)

    def _completed(self, item: ToolCompleted) -> Event:
        try:
            output = clean_json(item.output)
        except UncleanValue as error:
            return self._failed(item.tool_call_id, f"the output cannot be stored: {error}")
        id = self._close(item.tool_call_id)
        return events.tool_completed(tool_call_id=id, output=output)

    def _failed(self, tool_call_id: str, error: str) -> Event:
        return events.tool_failed(tool_call_id=self._close(tool_call_id), error=clean_text(error))

    def _close(self, tool_call_id: str) -> str:
        id = clean_text(tool_call_id)
        if id not in self._open:
            raise AgentProtocolError(f"tool call {id!r} ended, but is not open")
        self._open = {other: name for other, name in self._open.items() if other != id}
        return id

    def _text_ended(self) -> list[str]:
        return split_text(self._text.flush())

    def _thinking_ended(self) -> list[Event]:
        return _thoughts(self._thought.flush())

    def _all_ended(self) -> list[Said]:
        return [*self._thinking_ended(), *self._text_ended()]


def _count(number: object) -> int | None:
    """A number of tokens, as far as it is one."""
    return number if isinstance(number, int) and 0 <= number < 2**53 else None


def _thoughts(text: str) -> list[Event]:
    return [events.reasoning(piece) for piece in split_text(text)]
