"""The chat page in a real browser, in front of the real processes."""

import time
from itertools import pairwise

import pytest
from playwright.sync_api import TimeoutError as NothingCame
from playwright.sync_api import expect

from tests.browser.conftest import PATIENCE, words
from tests.live_agents import HOSTILE
from tests.waiting import wait_until

pytest_plugins = ["tests.live"]

HELD = "word 0 word 1 word 2 word 3 word 4"
"""What `rounds` has said while it waits for its gate."""
WHOLE = f"{HELD} word 5 word 6 word 7 word 8 word 9"
FRIGHTFUL = (
    "<img src=x onerror=window.ran=1><script>window.ran=1</script>"
    "<iframe srcdoc='<script>parent.ran=1</script>'></iframe></p></article>"
    "<a href='javascript:window.ran=1'>here</a>\u2028\u202e&lt;b&gt;"
)
SAYS = {"done": "", "cancelled": "Stopped by you."}
SHOWN_TEXTS = "window.texts"
RECORD_TEXTS = """
    window.texts = [];
    new MutationObserver(() => {
        const said = [...document.querySelectorAll('.answer > .parts > .text')]
            .map((text) => text.textContent).join(' ').split(/\\s+/).filter(Boolean).join(' ');
        if (said) window.texts.push(said);
    }).observe(document, { subtree: true, childList: true, characterData: true });
"""


def as_shown(turn):
    """A turn of the API as it should stand on the page."""
    status = turn["status"]
    return {
        "inputs": [given["text"] for given in turn["inputs"]],
        "output": words(turn["output"]),
        "status": "completed" if status == "done" else status,
        "said": f"Failed: {turn['error']['message']}" if status == "failed" else SAYS[status],
    }


def assert_equal_to_the_api(person, conversation, *tabs):
    """Nothing is missing on the page, nothing twice, nothing out of order."""
    turns = [as_shown(turn) for turn in person.turns(conversation)]
    assert [tab.transcript() for tab in tabs] == [turns] * len(tabs)


def assert_silent(*tabs):
    """For three seconds, more than an EventSource waits before it asks again."""
    before = [len(tab.calls) for tab in tabs]
    with (
        pytest.raises(NothingCame),
        tabs[0].page.expect_request("**/api/**", timeout=3000),
    ):
        pass
    assert [len(tab.calls) for tab in tabs] == before


# One page -------------------------------------------------------------------------------------


def test_an_answer_is_typed_out(person):
    tab = person.tab()
    tab.page.evaluate(RECORD_TEXTS)
    tab.send("Where is my order 2077?")
    expect(tab.stop).to_be_visible()
    tab.shows(1, "completed")
    expect(tab.stop).to_be_hidden()
    texts = list(dict.fromkeys(tab.page.evaluate(SHOWN_TEXTS)))
    assert len(texts) > 10
    assert all(later.startswith(text) for text, later in pairwise(texts))
    assert_equal_to_the_api(person, tab.page.url.rpartition("/c/")[2], tab)


def test_a_spinner_turns_until_the_first_token(person, live):
    gate = live.gate()
    tab = person.tab(person.asked("silent", gate=str(gate)))
    tab.shows(1, "running")
    expect(tab.status).to_have_text("Thinking…")
    assert tab.status.evaluate("e => getComputedStyle(e, '::before').animationName") == "turn"
    assert tab.transcript()[0]["output"] == ""
    gate.touch()
    tab.says("At last.")
    tab.shows(1, "completed")
    expect(tab.status).to_be_hidden()


def test_a_page_reloaded_in_mid_answer_starts_from_its_beginning_and_goes_on(person, live):
    gate = live.gate()
    conversation = person.asked("rounds", gate=str(gate))
    tab = person.tab(conversation)
    tab.says(HELD)
    tab.page.reload()
    tab.says(HELD)
    expect(tab.stop).to_be_visible()
    gate.touch()
    tab.shows(1, "completed")
    assert tab.transcript()[0]["output"] == WHOLE
    assert_equal_to_the_api(person, conversation, tab)


def test_a_failed_answer_keeps_its_text_and_says_why_and_the_next_question_is_answered(person):
    conversation = person.conversation("words")
    person.say(conversation, "go", agent="failing")
    tab = person.tab(conversation)
    tab.shows(1, "failed")
    tab.says("So far so good. ")
    expect(tab.status).to_have_text("Failed: The model is overloaded.")
    tab.send("again")
    tab.shows(2, "completed")
    assert_equal_to_the_api(person, conversation, tab)


def test_what_was_asked_elsewhere_meanwhile_appears_when_the_answer_is_over(person, live):
    gate = live.gate()
    conversation = person.asked("silent", gate=str(gate))
    tab = person.tab(conversation)
    tab.shows(1, "running")
    person.say(conversation, "and then?", agent="words")
    gate.touch()
    tab.shows(2, "completed")
    assert_equal_to_the_api(person, conversation, tab)


def test_after_the_end_a_page_asks_for_nothing(person, live):
    gate = live.gate()
    conversation = person.asked("silent", gate=str(gate))
    watching = person.tab(conversation)
    watching.shows(1, "running")
    with watching.page.expect_response(f"**/api/conversations/{conversation}"):
        gate.touch()
    later = person.tab(conversation)
    for tab in (watching, later):
        tab.shows(1, "completed")
    assert_silent(watching, later)
    assert ["/stream?" in call for call in watching.calls].count(True) == 1
    assert ["/stream?" in call for call in later.calls].count(True) == 0


def test_somebody_signed_out_in_mid_answer_is_told_and_the_page_stops_asking(person, live):
    gate = live.gate()
    tab = person.tab(person.asked("silent", gate=str(gate)))
    tab.shows(1, "running")
    person.context.route("**/api/**", lambda route: route.fulfill(status=401, json={}))
    tab.page.evaluate("window.dispatchEvent(new Event('online'))")
    expect(tab.page.locator("#notice")).to_contain_text("You are signed out.")
    expect(tab.status).to_contain_text("You are signed out.")
    gate.touch()
    assert_silent(tab)


# What must not run ----------------------------------------------------------------------------


def test_what_looks_like_html_is_shown_and_does_not_run(person):
    conversation = person.conversation("patient")
    tab = person.tab(conversation)
    tab.send(FRIGHTFUL)
    for _ in ("typed", "loaded"):
        tab.shows(1, "completed")
        [turn] = tab.transcript()
        assert turn["inputs"] == [FRIGHTFUL]
        assert turn["output"] == words(f"One moment. You said: {FRIGHTFUL}")
        shown = ".inputs *, .answer > .parts > .text *"
        tags = tab.page.locator(shown).evaluate_all("all => all.map((one) => one.tagName)")
        assert set(tags) == {"P"}
        assert tab.page.evaluate("window.ran") is None
        tab.page.reload()


def test_what_looks_like_a_frame_of_the_stream_is_text(person):
    conversation = person.asked("hostile")
    tab = person.tab(conversation)
    tab.shows(1, "failed")
    [turn] = tab.transcript()
    assert turn["output"] == words(HOSTILE)
    assert turn["said"] == f"Failed: {HOSTILE}"
    assert_equal_to_the_api(person, conversation, tab)


# Several tabs ---------------------------------------------------------------------------------


def test_a_second_tab_shows_the_same_messages_in_the_same_order(person, live):
    gate = live.gate()
    conversation = person.conversation("rounds")
    for text in ("one", "two"):
        person.say(conversation, text, agent="words")
    person.say(conversation, "three", gate=str(gate))
    tabs = [person.tab(conversation) for _ in range(2)]
    for tab in tabs:
        tab.shows(3, "running")
        tab.says(HELD)
    assert tabs[0].transcript() == tabs[1].transcript()
    gate.touch()
    for tab in tabs:
        tab.shows(3, "completed")
    tabs[1].send("four")
    for tab in tabs:
        tab.shows(4, "completed")
    assert_equal_to_the_api(person, conversation, *tabs)


def test_a_correction_from_the_second_tab_joins_the_same_turn_in_both(person, live):
    conversation = person.asked("patient", "two tickets", gate=str(live.gate()))
    first, second = person.tab(conversation), person.tab(conversation)
    for tab in (first, second):
        tab.says("One moment. ")
        expect(tab.page.locator("#hint")).to_contain_text("joins the running answer")
        tab.page.evaluate(RECORD_TEXTS)
    second.send("no, three")
    for tab in (first, second):
        tab.shows(1, "completed")
        expect(tab.newest.locator(".inputs > p")).to_have_text(["two tickets", "no, three"])
        answer = "One moment. You said: two tickets / no, three"
        tab.says(answer)
        assert all(answer.startswith(text) for text in tab.page.evaluate(SHOWN_TEXTS))
    assert_equal_to_the_api(person, conversation, first, second)


def test_stop_in_a_second_tab_stops_the_answer_everywhere_within_two_seconds(person, live):
    conversation = person.asked("patient", gate=str(live.gate()))
    first, second = person.tab(conversation), person.tab(conversation)
    for tab in (first, second):
        tab.says("One moment. ")
    pressed = time.monotonic()
    second.stop.click()
    for tab in (second, first):
        tab.shows(1, "cancelled")
    assert time.monotonic() - pressed < 2
    assert [turn["status"] for turn in person.turns(conversation)] == ["cancelled"]
    assert_equal_to_the_api(person, conversation, first, second)


def test_seven_tabs_on_running_answers_leave_the_browser_connections_to_work_with(person, live):
    gate = live.gate()
    conversations = [person.asked("silent", gate=str(gate)) for _ in range(7)]
    tabs = [person.tab(conversation) for conversation in conversations]
    for tab in tabs:
        expect(tab.turns).to_have_count(1, timeout=PATIENCE)
    tabs[-1].send("hurry")
    assert len(person.turns(conversations[-1])[0]["inputs"]) == 2
    gate.touch()
    for tab, conversation in zip(tabs, conversations, strict=True):
        tab.shows(1, "completed")
        assert_equal_to_the_api(person, conversation, tab)


# Trouble on the line --------------------------------------------------------------------------


def test_a_browser_that_was_offline_is_current_within_ten_seconds(person, live):
    gate = live.gate()
    conversation = person.asked("rounds", gate=str(gate))
    tab = person.tab(conversation)
    tab.says(HELD)
    person.context.set_offline(True)
    gate.touch()
    run_id = str(tab.newest.get_attribute("data-run-id"))
    wait_until(lambda: live.status(run_id) == "done", "the end while the browser is offline")
    person.context.set_offline(False)
    tab.shows(1, "completed", timeout=10_000)
    assert_equal_to_the_api(person, conversation, tab)


def test_a_page_completes_by_itself_after_its_gateway_was_stopped_and_then_killed(
    launch, person_at
):
    system = launch(KODA_LEASE="3", KODA_HEARTBEAT="1", KODA_SWEEP_INTERVAL="0.5")
    gate = system.gate()
    person = person_at(system)
    conversation = person.asked("rounds", gate=str(gate))
    tab = person.tab(conversation)
    tab.page.evaluate(RECORD_TEXTS)
    tab.says(HELD)
    with tab.page.expect_request("**/stream?*"):
        system.gateway.stop()
        system.gateway.start()
    system.gateway.kill()
    gate.touch()
    system.gateway.start()
    tab.shows(1, "completed")
    assert tab.transcript()[0]["output"] == WHOLE
    assert all(WHOLE.startswith(text) for text in tab.page.evaluate(SHOWN_TEXTS))
    assert_equal_to_the_api(person, conversation, tab)
