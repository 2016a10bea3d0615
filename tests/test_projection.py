"""The quick fold of a log equals the reducer's, wherever it is cut."""

from __future__ import annotations

import pytest

from runs import events, projection
from runs.events import EventType, RestartReason, StoredEvent
from runs.projection import Projection
from runs.reducer import ReducerError, fold

RUN = "r"
LOG = events.numbered(
    0,
    [
        events.run_started(attempt=1, agent="demo"),
        events.reasoning("first "),
        events.delta("Look"),
        events.tool_started(tool_call_id="b", name="search", input={"q": "你好"}),
        events.run_restarted(reason=RestartReason.MERGED, attempt=1, inputs=["one", "two"]),
        events.delta("A "),
        events.reasoning("why"),
        events.tool_started(tool_call_id="z", name="search", input=None),
        events.tool_started(tool_call_id="aa", name="buy", input=[1]),
        events.delta("word. "),
        events.tool_completed(tool_call_id="aa", output={"ok": True}),
        events.tool_failed(tool_call_id="z", error="interrupted"),
        events.delta("End 😀"),
        events.run_completed(finish_reason="stop", usage=None),
    ],
)
KEPT = LOG[:-1]


def test_wherever_a_log_is_cut_the_two_parts_give_the_state_of_the_whole():
    for cut in range(len(KEPT) + 1):
        made = Projection(RUN)
        made.extend(KEPT[:cut])
        assert made.state() == fold(RUN, KEPT[:cut])
        made.extend(LOG[cut:])
        assert made.state() == fold(RUN, KEPT)
        assert list(made.state()["tools"]) == list(fold(RUN, KEPT)["tools"])


def test_a_snapshot_stands_for_all_before_it_and_the_log_goes_on_behind_it():
    for cut in range(1, len(KEPT) + 1):
        first = Projection(RUN)
        first.extend(KEPT[:cut])
        snapshot = first.snapshot()
        assert (snapshot.seq, snapshot.type) == (cut - 1, EventType.SNAPSHOT)
        later = Projection(RUN)
        later.extend([snapshot, *LOG[cut:]])
        assert later.state() == fold(RUN, KEPT)
        assert fold(RUN, [snapshot, *LOG[cut:]]) == fold(RUN, LOG)
        assert later.next_seq == first.next_seq + len(KEPT) - cut


def test_the_order_in_which_tools_ended_begins_anew_with_a_restart():
    made = Projection(RUN)
    made.extend(LOG)
    assert made.ended_tools == ["aa", "z"]


def test_what_it_had_already_changes_nothing_and_a_hole_is_refused():
    made = Projection(RUN)
    made.extend(LOG[:6])
    before, size = made.state(), made.size
    made.extend(LOG[2:6])
    assert (made.state(), made.size) == (before, size)
    with pytest.raises(ReducerError, match="gap"):
        made.extend(LOG[7:])
    assert made.state() == before


def test_a_state_that_was_handed_out_stays_as_it_was():
    made = Projection(RUN)
    made.extend(LOG[:3])
    early = made.snapshot()
    made.extend(LOG[3:])
    assert early == StoredEvent(2, EventType.SNAPSHOT, fold(RUN, LOG[:3]))


def test_too_large_is_a_matter_of_what_counts_since_the_last_restart(monkeypatch):
    monkeypatch.setattr(projection, "MAX_SNAPSHOT", 1000)
    made = Projection(RUN)
    made.extend([*KEPT[:2], StoredEvent(2, EventType.DELTA, {"text": "x" * 1001})])
    assert made.too_large
    restarted = events.run_restarted(reason=RestartReason.RETRY, attempt=2, inputs=["one"])
    made.extend(events.numbered(3, [restarted]))
    assert not made.too_large
