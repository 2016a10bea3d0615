"""What an agent is told of the turns before this one."""

from __future__ import annotations

import json
from collections import defaultdict
from uuid import UUID

from runs.agents import ChatMessage, Turn
from runs.events import EventType
from runs.models import Conversation, Message, Run, RunInput
from runs.prepared import Prepared
from runs.states import TERMINAL

TOOL_TYPES = (
    EventType.TOOL_STARTED,
    EventType.TOOL_COMPLETED,
    EventType.TOOL_FAILED,
    EventType.RUN_RESTARTED,
    EventType.SNAPSHOT,
)


def inputs_of(run: Run) -> list[str]:
    """The run's user messages, oldest first."""
    return _INPUTS(run.pk)


_INPUTS = Prepared(
    lambda pk: RunInput.objects.filter(run=pk).order_by("position").values_list("text", flat=True),
    UUID,
)


def history_before(run: Run) -> list[ChatMessage]:
    """The finished turns before this one as chat messages, oldest first.

    Failed and cancelled turns count with the text that they got to, of turns that were answered
    anew the newest answer. Every tool call is followed by its result; one that was interrupted
    has none and is left out.
    """
    if run.turn == 1:
        return []
    earlier = list(
        Run.objects.filter(
            conversation=run.conversation_id,
            turn__lt=run.turn,
            status__in=TERMINAL,
            replaced_by=None,
        )
        .order_by("turn")
        .prefetch_related("inputs")
    )
    tools = _tool_messages(earlier)
    messages: list[ChatMessage] = []
    for turn in earlier:
        messages += [{"role": "user", "content": given.text} for given in turn.inputs.all()]
        messages += tools[turn.pk]
        if turn.output:
            messages.append({"role": "assistant", "content": turn.output})
    return messages


def _tool_messages(turns: list[Run]) -> defaultdict[object, list[ChatMessage]]:
    """For each run the paired tool calls and results since its last restart."""
    messages: defaultdict[object, list[ChatMessage]] = defaultdict(list)
    started: dict[tuple[object, str], dict[str, object]] = {}
    orders = {turn.pk: turn.tool_order or [] for turn in turns}
    rows = (
        Message.objects.filter(run_id__in=[turn.pk for turn in turns], type__in=TOOL_TYPES)
        .order_by("run_id", "seq")
        .values_list("run_id", "type", "data")
    )
    for run_id, type_, data in rows:
        if type_ == EventType.RUN_RESTARTED:
            messages[run_id].clear()
            continue
        if type_ == EventType.SNAPSHOT:
            for id in orders[run_id]:
                messages[run_id] += _collapsed_pair(id, data["tools"][id])
            continue
        call = (run_id, data["tool_call_id"])
        if type_ == EventType.TOOL_STARTED:
            started[call] = data
            continue
        begun = started.pop(call, None)
        if begun is not None:
            messages[run_id] += _pair(begun, data)
    return messages


def _collapsed_pair(id: str, tool: dict[str, object]) -> list[ChatMessage]:
    """A pair out of a snapshot, where a tool is one object with everything about it."""
    began = {"tool_call_id": id, "name": tool["name"], "input": tool.get("input")}
    result = "error" if tool["status"] == "failed" else "output"
    return _pair(began, {result: tool[result]})


def _pair(begun: dict[str, object], ended: dict[str, object]) -> list[ChatMessage]:
    id = str(begun["tool_call_id"])
    result = ended["output"] if "output" in ended else {"error": ended["error"]}
    return [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": id,
                    "type": "function",
                    "function": {
                        "name": str(begun["name"]),
                        "arguments": json.dumps(begun["input"], ensure_ascii=False),
                    },
                }
            ],
        },
        {
            "role": "tool",
            "tool_call_id": id,
            "content": json.dumps(result, ensure_ascii=False),
        },
    ]


def load_turn(run: Run) -> Turn:
    """What the agent is given. Reads the inputs last: one that comes later is a correction."""
    history = history_before(run)
    [conversation] = _WITH_OWNER(run.conversation_id)
    return Turn(
        run_id=str(run.pk),
        attempt=run.attempt,
        inputs=inputs_of(run),
        history=history,
        user=conversation.owner,
        metadata=run.metadata,
    )


_WITH_OWNER = Prepared(lambda pk: Conversation.objects.filter(pk=pk).select_related("owner"), UUID)
