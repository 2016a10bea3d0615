"""One streamed chat completion: bytes in, what an agent yields out. No I/O.

The official client's own stream class is not used. It loses the first event after a byte order
mark, fails on a lone `retry:` or `id:` and on control characters that a model put into its JSON
unescaped, and does not tell an answer that was cut from one that ended.
"""

import json
from collections.abc import Iterator

from runs.agents.base import (
    Event,
    Finish,
    PermanentError,
    Reasoning,
    ToolFailed,
    ToolStarted,
    TransientError,
    Usage,
)
from runs.agents.provider_errors import in_stream_error
from runs.agents.sse import ServerEvent, SSEDecoder
from runs.agents.tool_calls import ToolCalls


class ChatStream:
    """Folds the stream of one answer.

    Feed it the body as it comes, stop at `done`, call `close` at the end. Unknown fields,
    null content, chunks without choices and choices beyond the first are ignored. Tool calls
    are collected, since none were offered: `close` reports each as failed.
    """

    def __init__(self) -> None:
        self._decoder = SSEDecoder()
        self._calls = ToolCalls()
        self._usage: Usage | None = None
        self._finish_reason: str | None = None
        self.done = False
        self.silent = True
        """No event of any kind was seen."""

    @property
    def ended(self) -> bool:
        """The answer is complete; at most its usage is still to come."""
        return self.done or self._finish_reason is not None

    def feed(self, chunk: bytes) -> Iterator[str | Event]:
        """What `chunk` adds to the answer. Raises the provider's in-stream error.

        Raises `PermanentError` (`invalid_chunk`) for data that is not JSON.
        """
        for event in self._decoder.feed(chunk):
            self.silent = False
            if not self.done:
                yield from self._take(event)

    def close(self) -> Iterator[Event]:
        """The end of the answer. Raises `TransientError` (`stream_cut`) if it was cut."""
        if not self.ended:
            raise TransientError(
                "The model server's answer broke off in the middle.", code="stream_cut"
            )
        yield from self._refused_calls()
        if self._usage is not None:
            yield self._usage
        if self._finish_reason is not None:
            yield Finish(self._finish_reason)

    def _take(self, event: ServerEvent) -> Iterator[str | Event]:
        if event.data.startswith("[DONE]"):
            self.done = True
            return
        chunk = _parsed(event)
        if not isinstance(chunk, dict):
            return
        error = chunk.get("error")
        if not error and (
            event.name == "error" or "error" in (chunk.get("type"), chunk.get("object"))
        ):
            error = chunk
        if error:
            raise in_stream_error(error)
        self._note_usage(chunk.get("usage"))
        choices = chunk.get("choices")
        if isinstance(choices, list) and choices and isinstance(choices[0], dict):
            yield from self._choice(choices[0])

    def _choice(self, choice: dict[str, object]) -> Iterator[str | Event]:
        if choice.get("error"):
            raise in_stream_error(choice["error"])
        delta = choice.get("delta")
        if isinstance(delta, dict):
            yield from self._delta(delta)
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self._finish_reason = reason

    def _delta(self, delta: dict[str, object]) -> Iterator[str | Event]:
        thought = delta.get("reasoning_content") or delta.get("reasoning")
        if thought and isinstance(thought, str):
            yield Reasoning(thought)
        text = delta.get("content") or delta.get("refusal")
        if text and isinstance(text, str):
            yield text
        fragments = delta.get("tool_calls")
        for fragment in fragments if isinstance(fragments, list) else ():
            self._calls.add(fragment)

    def _note_usage(self, usage: object) -> None:
        if not isinstance(usage, dict):
            return
        counts = (usage.get("prompt_tokens"), usage.get("completion_tokens"))
        given, written = (count if isinstance(count, int) else 0 for count in counts)
        self._usage = Usage(input_tokens=given, output_tokens=written)

    def _refused_calls(self) -> Iterator[Event]:
        for call in self._calls:
            try:
                arguments, error = call.parsed(), f"There is no tool named {call.name!r}."
            except ValueError as invalid:
                arguments, error = {}, f"Invalid JSON arguments: {invalid}."
            yield ToolStarted(call.id, call.name, arguments)
            yield ToolFailed(call.id, error)


def _parsed(event: ServerEvent) -> object:
    try:
        return json.loads(event.data, strict=False)  # raw control characters are text
    except (ValueError, RecursionError) as error:
        if event.name == "error":
            return {"message": event.data}
        shown = event.data[:200]
        raise PermanentError(
            f"The model server sent something that is not JSON: {shown}", code="invalid_chunk"
        ) from error
