"""Several tabs of one browser."""

import time

from playwright.sync_api import expect

from tests.browser.transcripts import HELD, RECORD_TEXTS, SHOWN_TEXTS, assert_equal_to_the_api

pytest_plugins = ["tests.live"]


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


def test_twenty_tabs_share_the_few_connections_of_a_browser(person, live):
    gate = live.gate()
    shared = person.asked("rounds", gate=str(gate))
    others = [person.asked("silent", gate=str(gate)) for _ in range(10)]
    same = [person.tab(shared) for _ in range(10)]
    tabs = [*same, *(person.tab(other) for other in others)]
    for tab in same:
        tab.says(HELD)
    streams = sum("/stream?" in call for tab in same for call in tab.calls)
    assert streams == 1
    tabs[-1].send("hurry")
    assert len(person.turns(others[-1])[0]["inputs"]) == 2
    gate.touch()
    for tab, conversation in zip(tabs, [shared] * 10 + others, strict=True):
        tab.shows(1, "completed")
        assert_equal_to_the_api(person, conversation, tab)


def test_another_tab_takes_the_stream_over_where_the_first_left_it(person, live):
    gate = live.gate()
    conversation = person.asked("rounds", gate=str(gate))
    first, second = person.tab(conversation), person.tab(conversation)
    for tab in (first, second):
        tab.says(HELD)
    with second.page.expect_request("**/stream?*last_event_id=*"):
        first.page.close()
    gate.touch()
    second.shows(1, "completed")
    assert_equal_to_the_api(person, conversation, second)
