"""The list of conversations beside the thread."""

from playwright.sync_api import expect

pytest_plugins = ["tests.live"]


def test_a_conversation_is_named_after_its_first_message_and_can_be_opened_again(person):
    tab = person.tab()
    listed = tab.page.locator("#conversations a")
    expect(tab.page.get_by_text("Your conversations will be listed here.")).to_be_visible()
    tab.send("Where is my order 2077?")
    expect(listed).to_have_text(["Where is my order 2077?"])
    expect(listed).to_have_attribute("aria-current", "page")
    address = tab.page.url
    tab.page.get_by_role("link", name="New conversation").first.click()
    expect(tab.turns).to_have_count(0)
    expect(tab.page.get_by_role("heading", name="What would you like to know?")).to_be_visible()
    listed.first.click()
    expect(tab.turns).to_have_count(1)
    assert tab.page.url == address
    tab.page.go_back()
    expect(tab.turns).to_have_count(0)


def test_a_conversation_is_renamed_in_every_tab(person):
    conversation = person.asked("words", "tea or coffee")
    second, first = person.tab(conversation), person.tab(conversation)
    row = first.page.locator("#conversations li")
    row.hover()
    row.get_by_role("button", name="Rename “tea or coffee”").click()
    box = first.page.get_by_label("New title")
    box.fill("Drinks")
    box.press("Enter")
    for tab in (first, second):
        expect(tab.page.locator("#conversations a")).to_have_text("Drinks")
        expect(tab.page).to_have_title("Drinks – Koda")


def test_renaming_can_be_left_without_a_change(person):
    tab = person.tab(person.asked("words", "tea or coffee"))
    row = tab.page.locator("#conversations li")
    row.hover()
    row.get_by_role("button", name="Rename").click()
    tab.page.get_by_label("New title").press("Escape")
    link = tab.page.locator("#conversations a")
    expect(link).to_have_text("tea or coffee")
    expect(link).to_be_focused()


def test_a_conversation_is_deleted_after_a_question(person):
    kept, gone = person.asked("words", "keep me"), person.asked("words", "delete me")
    other, tab = person.tab(gone), person.tab(gone)
    row = tab.page.locator("#conversations li", has_text="delete me")
    for answer in ("Keep", "Delete"):
        expect(row).to_have_count(1)
        row.hover()
        row.get_by_role("button", name="Delete “delete me”").click()
        tab.page.get_by_role("dialog").get_by_role("button", name=answer).click()
    expect(tab.page.locator("#conversations a")).to_have_text(["keep me"])
    assert tab.page.url.endswith("/")
    expect(other.page.get_by_role("alert")).to_contain_text("does not exist")
    assert [one["id"] for one in person.call("GET", "conversations")["conversations"]] == [kept]


def test_a_search_finds_words_of_questions_and_answers(person):
    person.asked("words", "the blue kettle")
    person.asked("words", "something else")
    tab = person.tab()
    listed = tab.page.locator("#conversations a")
    expect(listed).to_have_count(2)
    search = tab.page.get_by_label("Search conversations")
    search.fill("kettle")
    expect(listed).to_have_text(["the blue kettle"])
    search.fill("nowhere to be found")
    expect(tab.page.get_by_text("Nothing found.")).to_be_visible()
    search.fill("")
    expect(listed).to_have_count(2)


def test_a_long_list_is_shown_in_pages(person):
    for number in range(51):
        person.call("POST", "conversations", title=f"Conversation {number}")
    tab = person.tab()
    listed = tab.page.locator("#conversations a")
    expect(listed).to_have_count(50)
    tab.page.get_by_role("button", name="Show more").click()
    expect(listed).to_have_count(51)
