"""Tool calls out of the fragments of a chat completion stream."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass
class StreamedCall:
    """A call as far as it has come; `arguments` is JSON text."""

    id: str
    index: object
    name: str = ""
    pieces: list[str] = field(default_factory=list)

    @property
    def arguments(self) -> str:
        return "".join(self.pieces)

    def parsed(self) -> dict[str, object]:
        """The arguments; none at all are `{}`. Raises `ValueError` unless an object."""
        try:
            value: object = json.loads(self.arguments.strip() or "{}", strict=False)
        except RecursionError:
            raise ValueError("the arguments are nested too deep") from None
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise ValueError("the arguments are not a JSON object")  # noqa: TRY004
        return value


class ToolCalls:
    """Puts the fragments of calls together.

    Providers agree on little: an index may be missing or always 0, an id may come once, with
    every fragment or never, calls may interleave, arguments may be an object. An id, where
    there is one, decides; then the index; then the order.
    """

    def __init__(self) -> None:
        self._calls: list[StreamedCall] = []

    def __iter__(self) -> Iterator[StreamedCall]:
        return iter(self._calls)

    def add(self, fragment: object) -> None:
        """Takes one element of a delta's `tool_calls`; what is not an object is ignored."""
        if not isinstance(fragment, dict):
            return
        function = fragment.get("function")
        function = function if isinstance(function, dict) else {}
        name, arguments = function.get("name"), function.get("arguments")
        call = self._call_of(fragment.get("id"), fragment.get("index"), name)
        if isinstance(name, str) and not call.name:
            call.name = name
        if isinstance(arguments, str):
            call.pieces.append(arguments)
        elif isinstance(arguments, dict):
            call.pieces.append(json.dumps(arguments))

    def _call_of(self, call_id: object, index: object, name: object) -> StreamedCall:
        if isinstance(call_id, str) and call_id:
            known = next((call for call in self._calls if call.id == call_id), None)
            return known or self._begin(call_id, index)
        same = [call for call in self._calls if index is None or call.index == index]
        if not same or (name and self._complete(same[-1], index)):
            return self._begin(self._fresh_id(), index)
        return same[-1]

    def _complete(self, call: StreamedCall, index: object) -> bool:
        """Whether a further name means a further call: some repeat the name every time."""
        if not call.name:
            return False
        if index is None:
            return True
        try:
            json.loads(call.arguments)
        except ValueError:
            return False
        return True

    def _begin(self, call_id: str, index: object) -> StreamedCall:
        self._calls.append(StreamedCall(call_id, index))
        return self._calls[-1]

    def _fresh_id(self) -> str:
        taken = {call.id for call in self._calls}
        number = len(self._calls)
        while f"call_{number}" in taken:
            number += 1
        return f"call_{number}"
