"""The projection of a run's log, and that it equals the page's (the shared table)."""

import json
from copy import deepcopy
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runs.events import StoredEvent
from runs.reducer import (
    AgentEvent,
    ReducerError,
    State,
    fold,
    initial_agent_state,
    reduce_agent_event,
    to_agent_event,
)

RUN = "r"
CASES = json.loads((Path(__file__).parent / "reducer_cases.json").read_text(encoding="utf-8"))

Log = list[StoredEvent]


def refused(state: State, event: AgentEvent) -> str:
    with pytest.raises(ReducerError) as caught:
        reduce_agent_event(state, event)
    return str(caught.value)


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_the_table_shared_with_the_page(case: dict[str, Any]) -> None:
    state = initial_agent_state(RUN)
    for step in case["steps"]:
        event = {"runId": RUN, **step["event"]}
        before = deepcopy((state, event))
        if "error" in step:
            assert refused(state, event) == step["error"]
            assert (state, event) == before
            continue
        after = reduce_agent_event(state, event)
        assert (state, event) == before
        if step.get("same"):
            assert after is state
        if "state" in step:
            assert after == step["state"]
        state = after


def test_the_initial_state_is_exactly_this() -> None:
    assert initial_agent_state(RUN) == {
        "runId": RUN,
        "status": "idle",
        "lastSequence": 0,
        "text": "",
        "tools": {},
        "error": None,
    }


FAILURE = {"code": "provider_error", "message": "overloaded"}


@pytest.mark.parametrize(
    ("kind", "data", "event"),
    [
        ("delta", {"text": "wa"}, {"type": "token_delta", "delta": "wa"}),
        ("reasoning", {"text": "Hm"}, {"type": "reasoning_delta", "delta": "Hm"}),
        (
            "tool_started",
            {"tool_call_id": "c1", "name": "find_order", "input": {"order_id": {"raw_id": 1}}},
            {
                "type": "tool_started",
                "toolCallId": "c1",
                "name": "find_order",
                "input": {"order_id": {"raw_id": 1}},
            },
        ),
        (
            "tool_completed",
            {"tool_call_id": "c1", "output": [{"ship_date": None}]},
            {"type": "tool_completed", "toolCallId": "c1", "output": [{"ship_date": None}]},
        ),
        ("run_failed", FAILURE, {"type": "run_failed", "error": FAILURE}),
        (
            "run_completed",
            {"finish_reason": "stop", "usage": {"input_tokens": 3}},
            {"type": "run_completed", "finishReason": "stop", "usage": {"input_tokens": 3}},
        ),
        ("snapshot", {"text": "so far"}, {"type": "snapshot", "state": {"text": "so far"}}),
    ],
)
def test_a_row_becomes_an_event(kind: str, data: dict[str, Any], event: dict[str, Any]) -> None:
    assert to_agent_event(RUN, 4, kind, data) == {"runId": RUN, "sequence": 5, **event}


def test_data_cannot_speak_for_the_envelope() -> None:
    event = to_agent_event(RUN, 4, "run_cancelled", {"run_id": "x", "sequence": 1, "type": "y"})
    assert event == {"runId": RUN, "sequence": 5, "type": "run_cancelled"}


def test_a_fold_refuses_a_log_with_a_hole() -> None:
    log = [StoredEvent(0, "run_started", {}), StoredEvent(2, "delta", {"text": "a"})]
    with pytest.raises(ReducerError, match="gap"):
        fold(RUN, log)


@st.composite
def logs(draw: st.DrawFn) -> Log:
    """Logs that a run can have: any order of legal events, ended or not."""
    events: list[tuple[str, dict[str, Any]]] = [("run_started", {"attempt": 1, "agent": "demo"})]
    started = 0
    running: list[str] = []
    inputs = ["first"]
    kinds = st.sampled_from(["delta", "reasoning", "tool", "tool_end", "restart"])
    for kind in draw(st.lists(kinds, max_size=20)):
        match kind:
            case "delta" | "reasoning":
                events.append((kind, {"text": draw(st.sampled_from(["", "a ", "你", "😀"]))}))
            case "tool":
                call = f"call-{started}"
                started += 1
                running.append(call)
                events.append(("tool_started", {"tool_call_id": call, "name": "n", "input": {}}))
            case "tool_end" if running:
                call = running.pop(draw(st.integers(0, len(running) - 1)))
                ending, field = draw(
                    st.sampled_from([("completed", "output"), ("failed", "error")])
                )
                events.append((f"tool_{ending}", {"tool_call_id": call, field: "x"}))
            case "restart":
                inputs = [*inputs, "more"]
                started = 0
                running.clear()
                events.append(("run_restarted", {"reason": "merged", "inputs": inputs}))
    last = draw(st.sampled_from(["run_completed", "run_failed", "run_cancelled", None]))
    if last is not None:
        events.append((last, FAILURE if last == "run_failed" else {"reason": "user"}))
    return [StoredEvent(seq, kind, data) for seq, (kind, data) in enumerate(events)]


def apply(state: State, log: Log) -> State:
    events = [to_agent_event(RUN, row.seq, row.type, row.data) for row in log]
    return reduce(reduce_agent_event, events, state)


@settings(deadline=None)
@given(log=logs(), data=st.data())
def test_duplicates_and_overlaps_change_nothing(log: Log, data: st.DataObject) -> None:
    """Each reconnect replays from anywhere before the pointer, and gets some way."""
    state, pointer = initial_agent_state(RUN), 0
    while pointer < len(log):
        start = data.draw(st.integers(0, pointer))
        pointer = data.draw(st.integers(pointer + 1, len(log)))
        state = apply(state, log[start:pointer])
    assert state == fold(RUN, log)
    assert apply(state, log) is state


@settings(deadline=None)
@given(log=logs(), data=st.data())
def test_a_snapshot_stands_for_what_it_replaces(log: Log, data: st.DataObject) -> None:
    cut = data.draw(st.integers(1, len(log)))
    snapshot = StoredEvent(cut - 1, "snapshot", dict(fold(RUN, log[:cut])))
    assert fold(RUN, [snapshot, *log[cut:]]) == fold(RUN, log)
