"""Trouble on the line: the page mends it by itself."""

from playwright.sync_api import expect

from tests.browser.transcripts import (
    HELD,
    RECORD_TEXTS,
    SHOWN_TEXTS,
    WHOLE,
    assert_equal_to_the_api,
)
from tests.waiting import wait_until

pytest_plugins = ["tests.live"]


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


def test_a_page_that_comes_back_from_elsewhere_is_current(person, live):
    gate = live.gate()
    conversation = person.asked("rounds", gate=str(gate))
    tab = person.tab(conversation)
    tab.says(HELD)
    tab.page.goto("/api/docs")
    gate.touch()
    tab.page.go_back()
    tab.shows(1, "completed", timeout=10_000)
    assert_equal_to_the_api(person, conversation, tab)


def test_a_hidden_page_holds_no_stream_and_is_current_once_it_is_seen(person, live):
    gate = live.gate()
    conversation = person.asked("rounds", gate=str(gate))
    hidden, seen = person.tab(conversation), person.tab(conversation)
    for tab in (hidden, seen):
        tab.says(HELD)
    with seen.page.expect_request("**/stream?*"):
        hidden.hide(True)
    gate.touch()
    seen.shows(1, "completed")
    assert hidden.transcript()[0]["status"] == "running"
    hidden.hide(False)
    hidden.shows(1, "completed")
    assert_equal_to_the_api(person, conversation, hidden, seen)


def test_one_quiet_line_says_that_the_page_reconnects(person, live):
    gate = live.gate()
    tab = person.tab(person.asked("rounds", gate=str(gate)))
    tab.says(HELD)
    person.context.set_offline(True)
    line = tab.page.locator("#connection")
    expect(line).to_have_text("Reconnecting…")
    person.context.set_offline(False)
    expect(line).to_be_empty()
    gate.touch()
    tab.says(WHOLE)


def test_another_device_sees_what_was_asked_once_it_is_touched(person, person_at, live):
    conversation = person.asked("words")
    tab = person.tab(conversation)
    tab.shows(1, "completed")
    tab.page.evaluate("Date.now = ((now) => () => now() + 11_000)(Date.now.bind(Date))")
    person.say(conversation, "and now?")  # past the page, as another device would
    tab.page.mouse.move(300, 300)
    tab.shows(2, "completed")
