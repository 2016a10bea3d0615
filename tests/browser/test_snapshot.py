"""The chat page with a run whose beginning comes as a snapshot."""

from playwright.sync_api import expect

from tests.browser.conftest import words
from tests.waiting import wait_until

pytest_plugins = ["tests.live"]

ROUNDS, HELD = 400, 350
"""Rounds of three events each: when it waits, the log is longer than the replay cap."""


def said(rounds: int) -> str:
    return "".join(f"word {number} " for number in range(rounds))


def test_a_long_answer_goes_on_behind_the_snapshot_that_it_began_with(person, live):
    gate = live.gate()
    conversation = person.asked("rounds", rounds=ROUNDS, hold_at=HELD, gate=str(gate))
    [run] = person.turns(conversation)

    def written() -> bool:
        return bool(person.call("GET", f"runs/{run['run_id']}")["last_seq"] == 3 * HELD)

    wait_until(written, "the run to wait for its gate", timeout=60)
    early, late = person.tab(conversation), person.tab(conversation)
    for tab in (early, late):
        tab.says(said(HELD))
        tab.shows(1, "running")
    late.page.reload()
    late.says(said(HELD))
    # A snapshot does not say where in the text its tools were called; the log does.
    shown = late.newest.locator(".answer > .parts > *")
    expect(shown).to_have_count(2 * HELD)
    kinds = shown.evaluate_all("all => all.map((one) => one.className)")
    assert kinds == ["text", "tool"] * HELD
    gate.touch()
    for tab in (early, late):
        tab.shows(1, "completed")
        assert tab.transcript()[0]["output"] == words(said(ROUNDS))
