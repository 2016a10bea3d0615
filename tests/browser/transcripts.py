"""What should stand on the page, and how to see that nothing else ever did."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import TimeoutError as NothingCame

from tests.browser.conftest import Person, Tab, words

HELD = "word 0 word 1 word 2 word 3 word 4"
"""What `rounds` has said while it waits for its gate."""
WHOLE = f"{HELD} word 5 word 6 word 7 word 8 word 9"
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


def as_shown(turn: dict[str, Any]) -> dict[str, Any]:
    """A turn of the API as it should stand on the page."""
    status = turn["status"]
    return {
        "inputs": [given["text"] for given in turn["inputs"]],
        "output": words(turn["output"]),
        "status": "completed" if status == "done" else status,
        "said": f"Failed: {turn['error']['message']}" if status == "failed" else SAYS[status],
    }


def assert_equal_to_the_api(person: Person, conversation: str, *tabs: Tab) -> None:
    """Nothing is missing on the page, nothing twice, nothing out of order."""
    turns = [as_shown(turn) for turn in person.turns(conversation)]
    assert [tab.transcript() for tab in tabs] == [turns] * len(tabs)


def assert_silent(*tabs: Tab) -> None:
    """For three seconds, more than an EventSource waits before it asks again."""
    before = [len(tab.calls) for tab in tabs]
    with (
        pytest.raises(NothingCame),
        tabs[0].page.expect_request("**/api/**", timeout=3000),
    ):
        pass
    assert [len(tab.calls) for tab in tabs] == before
