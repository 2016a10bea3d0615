"""What an agent or a person writes is text: it does not run."""

from tests.browser.conftest import words
from tests.browser.transcripts import assert_equal_to_the_api
from tests.live_agents import HOSTILE

pytest_plugins = ["tests.live"]

FRIGHTFUL = (
    "<img src=x onerror=window.ran=1><script>window.ran=1</script>"
    "<iframe srcdoc='<script>parent.ran=1</script>'></iframe></p></article>"
    "<a href='javascript:window.ran=1'>here</a>\u2028\u202e&lt;b&gt;"
)
MARKDOWN = """\
# <img src=x onerror=window.ran=1>

[a](javascript:window.ran=1) ![b](data:text/html,<script>window.ran=1</script>) <javascript:x>

- [c](JaVaScRiPt:window.ran=1 "x") **<svg onload=window.ran=1>**

| <iframe srcdoc="<script>parent.ran=1</script>"> |
|---|
| [d](vbscript:x) |

> </script><script>window.ran=1</script>

```"onmouseover="window.ran=1
</code></pre><script>window.ran=1</script>
```
[fine](https://example.org/?a=1&b=<2> "title")
"""
HARMLESS = {
    *("A", "BLOCKQUOTE", "BUTTON", "CODE", "DIV", "H3", "LI", "P", "PRE", "SPAN", "STRONG"),
    *("TABLE", "TBODY", "TD", "TH", "THEAD", "TR", "UL"),
}


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


def test_hostile_markdown_in_pieces_becomes_harmless_elements(person):
    conversation = person.asked("scribe", says=MARKDOWN, piece=3)
    tab = person.tab(conversation)
    for _ in ("written", "loaded"):
        tab.shows(1, "completed")
        shown = tab.page.locator(".answer > .parts > .text *")
        tags = shown.evaluate_all("all => all.map((one) => one.tagName)")
        assert set(tags) <= HARMLESS
        names = shown.evaluate_all("all => all.flatMap((one) => one.getAttributeNames())")
        assert not [name for name in names if name.startswith("on") or name in {"style", "src"}]
        links = tab.page.locator(".parts a").evaluate_all("all => all.map((one) => one.href)")
        assert {link.partition(":")[0] for link in links} <= {"https"}
        assert tab.page.evaluate("window.ran") is None
        tab.page.reload()


def test_a_title_cannot_leave_its_place(person):
    title = "</script><img src=x onerror=window.ran=1>"
    conversation = str(person.call("POST", "conversations", title=title)["id"])
    tab = person.tab(conversation)
    link = tab.page.locator(f"#conversations a[data-id='{conversation}']")
    link.wait_for()
    assert link.text_content() == title
    assert tab.page.evaluate("window.ran") is None


def test_a_long_answer_is_whole_and_its_finished_blocks_are_never_drawn_again(person, live):
    gate = live.gate()
    says = "Paragraph {n} with **bold** and `code`.\n\n"
    conversation = person.asked("scribe", says=says, times=1500, piece=400, gate=str(gate))
    tab = person.tab(conversation)
    tab.page.locator(".text > p").nth(3).wait_for()
    tab.page.evaluate("window.kept = [...document.querySelectorAll('.text > p')].slice(0, 3)")
    tab.page.evaluate(
        """window.changes = 0;
        window.kept.forEach((p) => new MutationObserver(() => { window.changes += 1; })
            .observe(p, { subtree: true, childList: true, characterData: true }));"""
    )
    gate.touch()
    tab.shows(1, "completed")
    assert tab.page.locator(".text > p").count() == 1500
    assert tab.page.evaluate("window.kept.every((p) => p.isConnected)")
    assert tab.page.evaluate("window.changes") == 0
    assert tab.page.locator(".text > p").last.text_content() == "Paragraph 1499 with bold and code."
