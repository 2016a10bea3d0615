"""For everybody: assistive technology, the keyboard alone, another language, a small screen."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.browser.conftest import Person
from tests.browser.transcripts import HELD

pytest_plugins = ["tests.live"]

MARKDOWN = """\
## Heading

Text with **bold**, `code` and [a link](https://example.org/).

1. one
   - [x] inner

| a | b |
|---|---|
| 1 | 2 |

| c | d |
|---|---|
| 3 | 4 |

> quoted

```python
print("a long line of code " * 100)
```
"""
PHONE = {"width": 390, "height": 780}


def faults(page: Page) -> list[str]:
    """What axe finds, of any weight."""
    found = Axe().run(page).response["violations"]
    return [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in found]


@pytest.fixture
def conversation(person):
    """One with all that can be in it: Markdown, a tool, a correction's fold, a failure."""
    conversation = person.asked("scribe", says=MARKDOWN)
    person.say(conversation, "and", agent="rounds", rounds=2, hold_at=-1)
    person.say(conversation, "fail", agent="hostile")
    return conversation


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(person, conversation, scheme):
    tab = person.tab(conversation)
    tab.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    tab.shows(3, "failed")
    expect(tab.page.locator("#turns .tool")).to_have_count(4)
    tab.page.locator("#turns details").evaluate_all("all => all.forEach((d) => { d.open = true; })")
    assert faults(tab.page) == []
    tab.page.get_by_role("button", name="Edit question").click()
    assert faults(tab.page) == []


def test_axe_finds_nothing_on_a_phone_while_an_answer_is_written(person, live):
    gate = live.gate()
    tab = person.tab(person.asked("rounds", gate=str(gate)))
    tab.page.set_viewport_size(PHONE)
    tab.page.emulate_media(reduced_motion="reduce")
    tab.says(HELD)
    assert faults(tab.page) == []
    assert tab.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    tab.page.get_by_role("button", name="Conversations").click()
    expect(tab.page.get_by_label("Search conversations")).to_be_in_viewport()
    assert faults(tab.page) == []
    tab.page.keyboard.press("Escape")
    expect(tab.page.get_by_role("button", name="Conversations")).to_be_focused()
    gate.touch()
    tab.shows(1, "completed")


def test_everything_can_be_reached_with_the_keyboard(person):
    tab = person.tab(person.conversation("rounds"))
    expect(tab.box).to_be_focused()
    tab.page.keyboard.type("Where is my order 2077?")
    tab.page.keyboard.press("Enter")
    tab.shows(1, "completed")
    # An answer that was over before anybody listened shows its tools after its text.
    expect(tab.page.locator("details.tool")).to_have_count(10)
    expect(tab.box).to_be_focused()
    reached = []
    for _ in range(20):
        tab.page.keyboard.press("Shift+Tab")
        reached.append(tab.page.evaluate("document.activeElement.textContent.trim()"))
    assert reached[:3] == ["Edit question", "Answer again", "Copy"]
    assert sum(text.startswith("look_up") for text in reached) == 10
    assert "Where is my order 2077?" in reached
    assert "New conversation" in reached


def test_only_the_end_of_an_answer_is_read_aloud(person, live):
    gate = live.gate()
    tab = person.tab(person.asked("rounds", gate=str(gate)))
    tab.says(HELD)
    live_regions = tab.page.locator("[aria-live], [role=status], [role=alert], [role=log]")
    assert set(live_regions.all_text_contents()) == {""}
    gate.touch()
    tab.shows(1, "completed")
    expect(tab.page.locator("#announcement")).to_have_text("The answer is complete.")


def test_the_page_speaks_chinese(browser, live):
    person = Person(browser.new_context(base_url=live.gateway.url, locale="zh-CN"))
    page = person.tab().page
    expect(page.get_by_role("heading", name="您想了解什么")).to_be_visible()
    expect(page.get_by_role("button", name="我的订单 2077 到哪里了")).to_be_visible()
    page = person.tab(person.asked("silent", gate=str(live.gate()))).page
    expect(page.locator("#hint")).to_contain_text("秒内发送的消息会并入当前回答")
    page.get_by_role("button", name="停止").click()
    expect(page.locator("#announcement")).to_have_text("已由您停止。")
    assert page.locator("html").get_attribute("lang") == "zh-hans"
    person.close()
