"""The chat page in a real browser, in front of the real processes."""

import random
from itertools import pairwise

from playwright.sync_api import expect

from tests.browser.transcripts import (
    HELD,
    RECORD_TEXTS,
    SHOWN_TEXTS,
    WHOLE,
    assert_equal_to_the_api,
    assert_silent,
)

pytest_plugins = ["tests.live"]


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
        tab.page.wait_for_load_state("networkidle")  # its log has been read
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
    expect(tab.page.get_by_role("link", name="Sign in")).to_be_visible()
    gate.touch()
    assert_silent(tab)


def test_a_page_reloaded_at_ten_moments_misses_nothing(person, live):
    conversation = person.asked("words", count=80, pace=0.03)
    tab = person.tab(conversation)
    for seed in range(10):
        tab.page.reload()
        tab.page.wait_for_timeout(random.Random(seed).uniform(20, 250))  # any moment will do
    tab.shows(1, "completed")
    assert len(tab.transcript()[0]["output"].split()) == 80
    assert_equal_to_the_api(person, conversation, tab)


def test_a_draft_survives_a_reload_and_belongs_to_its_conversation(person):
    first, second = person.asked("words"), person.asked("words")
    tab = person.tab(first)
    tab.box.fill("half a question")
    tab.page.reload()
    expect(tab.box).to_have_value("half a question")
    tab.page.locator(f"#conversations a[data-id='{second}']").click()
    expect(tab.box).to_have_value("")
    tab.page.go_back()
    expect(tab.box).to_have_value("half a question")
    tab.box.press("Enter")
    tab.shows(2, "completed")
    tab.page.reload()
    tab.shows(2, "completed")
    expect(tab.box).to_have_value("")


def test_a_tool_opens_to_what_went_in_and_what_came_out(person):
    tab = person.tab(person.asked("rounds", rounds=1, hold_at=-1))
    tab.shows(1, "completed")
    tool = tab.newest.locator(".tool")
    expect(tool).to_have_attribute("data-status", "completed")
    tool.locator("summary").click()
    expect(tool.locator("pre").first).to_have_text('{ "round": 0 }')
    expect(tool.locator("pre").last).to_contain_text("你好 😀")


def test_what_a_correction_made_void_is_folded_away_and_not_lost(person, live):
    conversation = person.asked("patient", "two tickets", gate=str(live.gate()))
    tab = person.tab(conversation)
    tab.says("One moment.")
    tab.send("no, three")
    for _ in ("seen", "loaded"):
        tab.shows(1, "completed")
        folded = tab.newest.locator(".superseded")
        expect(folded.locator(".text")).to_be_hidden()
        folded.locator("summary").first.click()
        expect(folded.locator(".text")).to_have_text("One moment.")
        expect(folded.locator(".tool")).to_have_attribute("data-status", "failed")
        tab.page.reload()


def test_a_failed_answer_can_be_tried_again(person):
    conversation = person.conversation("words")
    person.say(conversation, "go", agent="failing")
    tab = person.tab(conversation)
    tab.shows(1, "failed")
    failed = tab.newest.get_attribute("data-run-id")
    tab.page.get_by_role("button", name="Try again").click()
    expect(tab.newest).not_to_have_attribute("data-run-id", str(failed))
    tab.shows(1, "failed")
    expect(tab.page.get_by_role("button", name="Answer again")).to_be_hidden()


def test_the_last_question_can_be_edited_and_is_answered_anew(person):
    conversation = person.asked("patient", "two tickets")
    tab = person.tab(conversation)
    tab.says("One moment. You said: two tickets")
    tab.page.get_by_role("button", name="Edit question").click()
    tab.page.get_by_label("Message 1").fill("three tickets")
    tab.page.get_by_role("button", name="Send again").click()
    tab.says("One moment. You said: three tickets")
    tab.shows(1, "completed")
    assert_equal_to_the_api(person, conversation, tab)


def test_earlier_turns_are_read_on_request_and_stay(person):
    conversation = person.asked("words", "one")
    for text in ("two", "three"):
        person.say(conversation, text)
    tab = person.tab(conversation)
    tab.shows(3, "completed")

    def without_the_first(route):
        answer = route.fetch()
        body = answer.json()
        turns = body["turns"][1:]
        route.fulfill(response=answer, json={**body, "turns": turns, "earlier": turns[0]["turn"]})

    person.context.route(f"**/api/conversations/{conversation}", without_the_first)
    tab.page.reload()
    tab.shows(2, "completed")
    more = tab.page.get_by_role("button", name="Show earlier messages")
    more.click()
    tab.shows(3, "completed")
    tab.send("four")
    tab.shows(4, "completed")
    assert [turn["inputs"] for turn in tab.transcript()] == [["one"], ["two"], ["three"], ["four"]]
    expect(more).to_be_hidden()
    person.context.unroute_all(behavior="wait")


def test_a_reader_who_scrolled_up_stays_there_until_they_jump(person, live):
    gate = live.gate()
    conversation = person.asked("rounds", rounds=40, hold_at=30, gate=str(gate))
    tab = person.tab(conversation)
    jump = tab.page.get_by_role("button", name="Jump to the latest")
    expect(tab.newest.locator(".tool")).to_have_count(30)
    expect(jump).to_be_hidden()
    tab.page.evaluate("scrollBy({ top: -600, behavior: 'instant' })")
    expect(jump).to_be_visible()
    before = tab.page.evaluate("scrollY")
    gate.touch()
    tab.shows(1, "completed")
    assert tab.page.evaluate("scrollY") == before
    jump.click()
    expect(jump).to_be_hidden()
    assert tab.page.evaluate("innerHeight + scrollY >= document.body.scrollHeight - 1")
