"""The plan is the seed's, and has everything in it."""

from __future__ import annotations

from itertools import islice

from tests.chaos import model, plan
from tests.stub_model import Request


def test_the_same_seed_gives_the_same_plan_and_another_one_another():
    for what in (plan.faults, lambda seed: plan.turns(seed, plan.WITNESSES)):
        first, again, other = (list(islice(what(seed), 20)) for seed in (7, 7, 8))
        assert first == again != other


def test_every_kind_of_fault_has_its_turn():
    for seed in range(20):
        planned = list(islice(plan.faults(seed), len(plan.KINDS)))
        assert {fault.kind for fault in planned} == set(plan.KINDS)
        lengths = [fault.lasts + fault.gap * (not fault.overlaps) for fault in planned]
        assert sum(lengths) < 120, "two minutes are enough for all"


def test_people_do_everything_and_at_the_end_of_answers_too():
    done = list(islice(plan.turns(1, plan.WITNESSES), 300))
    assert {turn.act for turn in done} == set(plan.ACTS)
    assert {watching.habit for turn in done for watching in turn.watching} == set(plan.HABITS)
    acting = [turn for turn in done if turn.act != "nothing"]
    assert sum(turn.after is None for turn in acting) > len(acting) / 4


def test_an_answer_names_every_message_that_it_has_read():
    earlier = [{"role": "user", "content": "[a-1] …"}, {"role": "assistant", "content": "Re a-1: "}]
    asked = [model.message("a-2", words=9, pace=1), model.message("a-3", words=2, pace=0.5)]
    now = [{"role": "user", "content": text} for text in asked]
    request = Request("POST", "/", {}, str([*earlier, *now]).replace("'", '"').encode())
    request.body = b'{"messages": ' + request.body + b"}"
    steps = model.reply(request).steps
    assert b"Re a-2, a-3: " in steps[0]
    assert len([step for step in steps if isinstance(step, bytes) and b"w1 " in step]) == 1
    assert model.names_in("Re a-2, a-3: w0 w1 ") == ["a-2", "a-3"]
