"""What a run looks like after some of its events: a pure projection of the log.

The page has the same reducer in streaming/static/koda/reducer.mjs. The two are
held equal, messages included, by tests/reducer_cases.json.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Literal, NoReturn, NotRequired, Protocol, TypedDict, cast

from runs.errors import KodaError

AgentEvent = dict[str, Any]
"""`runId`, `sequence` (from 1), `type`, and the fields of that type."""


class Tool(TypedDict):
    status: Literal["running", "completed", "failed"]
    name: str
    output: object
    input: NotRequired[object]
    error: NotRequired[object]


class State(TypedDict):
    """In camel case because it travels as it is: a snapshot is stored and sent in this form.

    The optional keys appear with the first event that brings them.
    """

    runId: str
    status: Literal["idle", "running", "completed", "failed", "cancelled"]
    lastSequence: int
    text: str
    tools: dict[str, Tool]
    error: object
    reasoning: NotRequired[str]
    inputs: NotRequired[object]
    reason: NotRequired[object]


class Row(Protocol):
    """A row of the log, as far as a projection reads it."""

    @property
    def seq(self) -> int: ...
    @property
    def type(self) -> str: ...
    @property
    def data(self) -> Mapping[str, Any]: ...


class ReducerError(KodaError, ValueError):
    """The event does not fit the state; the state is as it was."""


TERMINAL = frozenset({"completed", "failed", "cancelled"})


def initial_agent_state(run_id: str) -> State:
    return {
        "runId": run_id,
        "status": "idle",
        "lastSequence": 0,
        "text": "",
        "tools": {},
        "error": None,
    }


def reduce_agent_event(state: State, event: Mapping[str, Any]) -> State:
    """The state after `event`: a new object, or `state` itself if it has the event already.

    Raises ReducerError for an event that does not fit. The order of the checks
    (run, duplicate, gap, terminal, type) decides which fault is named.
    """
    if event.get("runId") != state["runId"]:
        _refuse(f"event of run {event.get('runId')}, state of run {state['runId']}")
    sequence = event.get("sequence")
    if type(sequence) is not int:
        _refuse("sequence must be a whole number")
    if sequence <= state["lastSequence"]:
        return state
    kind = event.get("type")
    if sequence != state["lastSequence"] + 1 and kind != "snapshot":
        _refuse(f"gap: expected event {state['lastSequence'] + 1}, got {sequence}")
    if state["status"] in TERMINAL:
        _refuse(f"event {sequence} comes after the end of the run ({state['status']})")
    step = _STEPS.get(kind) if isinstance(kind, str) else None
    if step is None:
        _refuse(f"unknown event type {kind}")
    return {**step(state, event), "lastSequence": sequence}


def fold(run_id: str, rows: Iterable[Row]) -> State:
    """The state after a log that begins at its start or with a snapshot."""
    state = initial_agent_state(run_id)
    for row in rows:
        event = to_agent_event(run_id, row.seq, row.type, row.data)
        state = reduce_agent_event(state, event)
    return state


def to_agent_event(
    run_id: str,
    seq: int,
    type: str,
    data: Mapping[str, Any],
) -> AgentEvent:
    """The event for a row of the log.

    Only the names of the row's own fields change, nothing inside their values.
    The data of a `snapshot` row is the state it stands for.
    """
    head = {"runId": run_id, "sequence": seq + 1, "type": _EVENT_TYPES.get(type, type)}
    return head | _event_fields(type, data) | head


_EVENT_TYPES = {"delta": "token_delta", "reasoning": "reasoning_delta"}


def _event_fields(kind: str, data: Mapping[str, Any]) -> dict[str, Any]:
    match kind:
        case "delta" | "reasoning":
            return {"delta": data["text"]}
        case "snapshot":
            return {"state": data}
        case "run_failed":
            return {"error": data}
        case _:
            return {_camel_case(field): value for field, value in data.items()}


@lru_cache(maxsize=128)
def _camel_case(field: str) -> str:
    first, *rest = field.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _refuse(message: str) -> NoReturn:
    raise ReducerError(message)


def _running(state: State, event: Mapping[str, Any]) -> None:
    if state["status"] != "running":
        _refuse(f"{event['type']} while the run is {state['status']}")


def _string(event: Mapping[str, Any], field: str) -> str:
    value = event.get(field)
    if not isinstance(value, str):
        _refuse(f"{event['type']} needs {field}, a string")
    return value


def _run_started(state: State, _event: Mapping[str, Any]) -> State:
    if state["status"] != "idle":
        _refuse(f"run_started while the run is {state['status']}")
    return {**state, "status": "running"}


def _token_delta(state: State, event: Mapping[str, Any]) -> State:
    _running(state, event)
    return {**state, "text": state["text"] + _string(event, "delta")}


def _reasoning_delta(state: State, event: Mapping[str, Any]) -> State:
    _running(state, event)
    return {**state, "reasoning": state.get("reasoning", "") + _string(event, "delta")}


def _tool_started(state: State, event: Mapping[str, Any]) -> State:
    _running(state, event)
    call, name = _string(event, "toolCallId"), _string(event, "name")
    if call in state["tools"]:
        _refuse(f"tool {call} has already started")
    tool: Tool = {"status": "running", "name": name, "output": None}
    if "input" in event:
        tool["input"] = event["input"]
    return {**state, "tools": {**state["tools"], call: tool}}


def _tool_completed(state: State, event: Mapping[str, Any]) -> State:
    call, tool = _running_tool(state, event)
    ended: Tool = {**tool, "status": "completed", "output": event.get("output")}
    return {**state, "tools": {**state["tools"], call: ended}}


def _tool_failed(state: State, event: Mapping[str, Any]) -> State:
    call, tool = _running_tool(state, event)
    ended: Tool = {**tool, "status": "failed", "error": event.get("error")}
    return {**state, "tools": {**state["tools"], call: ended}}


def _running_tool(state: State, event: Mapping[str, Any]) -> tuple[str, Tool]:
    _running(state, event)
    call = _string(event, "toolCallId")
    tool = state["tools"].get(call)
    if tool is None or tool["status"] != "running":
        _refuse(f"tool {call} is not running")
    return call, tool


def _run_restarted(state: State, event: Mapping[str, Any]) -> State:
    _running(state, event)
    restarted: State = {**state, "text": "", "tools": {}}
    restarted.pop("reasoning", None)
    if "inputs" in event:
        restarted["inputs"] = event["inputs"]
    return restarted


def _snapshot(state: State, event: Mapping[str, Any]) -> State:
    snapshot = event.get("state")
    if not isinstance(snapshot, dict):
        _refuse("snapshot needs state, an object")
    if snapshot.get("runId", state["runId"]) != state["runId"]:
        _refuse(f"snapshot of run {snapshot['runId']}, state of run {state['runId']}")
    return cast(State, {**initial_agent_state(state["runId"]), **snapshot})


def _run_completed(state: State, _event: Mapping[str, Any]) -> State:
    return {**state, "status": "completed"}


def _run_failed(state: State, event: Mapping[str, Any]) -> State:
    return {**state, "status": "failed", "error": event.get("error")}


def _run_cancelled(state: State, event: Mapping[str, Any]) -> State:
    return {**state, "status": "cancelled", "reason": event.get("reason")}


_STEPS: dict[str, Callable[[State, Mapping[str, Any]], State]] = {
    "run_started": _run_started,
    "token_delta": _token_delta,
    "reasoning_delta": _reasoning_delta,
    "tool_started": _tool_started,
    "tool_completed": _tool_completed,
    "tool_failed": _tool_failed,
    "run_restarted": _run_restarted,
    "snapshot": _snapshot,
    "run_completed": _run_completed,
    "run_failed": _run_failed,
    "run_cancelled": _run_cancelled,
}
