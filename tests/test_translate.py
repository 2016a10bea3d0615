"""From what an agent yields to events that a reducer accepts."""

import pytest

from runs.agents import Finish, Reasoning, ToolCompleted, ToolFailed, ToolStarted, Usage
from runs.events import Event, delta
from runs.reducer import initial_agent_state, reduce_agent_event, to_agent_event
from runs.translate import AgentProtocolError, Translator


def translate(*items: object) -> list[Event]:
    translator = Translator()
    said = [one for item in items for one in translator.translate(item)]
    return [delta(one) if isinstance(one, str) else one for one in [*said, *translator.end()]]


def spoken(events: list[Event]) -> str:
    return "".join(event.data["text"] for event in events if event.type == "delta")


def test_text_thoughts_and_tools_become_events_in_order():
    said = translate(
        Reasoning("hm"), "a", ToolStarted("t", "find", {"x": 1}), ToolCompleted("t", [1]), "b"
    )
    assert [event.type for event in said] == [
        "reasoning",
        "delta",
        "tool_started",
        "tool_completed",
        "delta",
    ]


def test_usage_and_finish_are_kept_for_the_end():
    translator = Translator()
    assert translator.translate(Usage(3, 4)) == []
    assert translator.translate(Finish("length")) == []
    assert (translator.usage, translator.finish_reason) == (
        {"input_tokens": 3, "output_tokens": 4},
        "length",
    )


def test_empty_text_says_nothing():
    assert translate("", Reasoning(""), "") == []


def test_a_character_cut_in_two_is_joined_and_half_a_one_is_replaced():
    assert spoken(translate("a\ud83d", "\ude00b")) == "a😀b"
    assert spoken(translate("a\ud83d", Reasoning("x"), "b\0")) == "a\ufffdb\ufffd"
    assert spoken(translate("a\ud83d")) == "a\ufffd"


def test_a_huge_fragment_is_cut_to_size():
    said = translate("x" * 200_000)
    assert max(len(event.data["text"]) for event in said) <= 65536
    assert spoken(said) == "x" * 200_000


def test_a_tool_without_a_result_is_closed_at_the_end():
    said = translate(ToolStarted("t", "find"), "done")
    assert said[-1] == Event("tool_failed", {"tool_call_id": "t", "error": said[-1].data["error"]})


def test_an_output_that_json_cannot_carry_is_a_tool_error():
    loop: list[object] = []
    loop.append(loop)
    said = translate(ToolStarted("t", "find"), ToolCompleted("t", loop))
    assert said[-1].type == "tool_failed"


@pytest.mark.parametrize(
    "items",
    [
        [42],
        [None],
        [ToolCompleted("t", 1)],
        [ToolFailed("t", "x")],
        [ToolStarted("t", "a"), ToolStarted("t", "a")],
        [ToolStarted("t", "a"), ToolCompleted("t", 1), ToolCompleted("t", 1)],
    ],
)
def test_nonsense_is_the_agents_error(items: list[object]):
    with pytest.raises(AgentProtocolError):
        translate(*items)


def test_whatever_comes_out_the_reducer_accepts():
    said = [
        Event("run_started", {"attempt": 1, "agent": "x"}),
        *translate("a", ToolStarted("__proto__", "n"), "b", ToolFailed("__proto__", "no"), ""),
        Event("run_completed", {"finish_reason": "stop", "usage": None}),
    ]
    state = initial_agent_state("r")
    for seq, event in enumerate(said):
        state = reduce_agent_event(state, to_agent_event("r", seq, event.type, event.data))
    assert state["status"] == "completed"
