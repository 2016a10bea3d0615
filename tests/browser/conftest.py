"""A real browser in front of running systems.

A `Person` is one browser profile: all its tabs share a session. Playwright's event loop counts as
running for as long as the browser does, which is why neither is left open for other test modules.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect, sync_playwright

from tests.live import System
from tests.waiting import wait_until

QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-proxy-server",
)
PATIENCE = 20_000
"""Milliseconds for what has no limit of its own."""


SAID = """
[...document.querySelectorAll('#turns > article')].map((article) => ({
    inputs: [...article.querySelectorAll('.inputs > p')].map((p) => p.textContent),
    output: [...article.querySelectorAll('.answer > .parts > .text')]
        .map((text) => text.textContent).join(' ').split(/\\s+/).filter(Boolean).join(' '),
    status: article.dataset.status,
    said: article.querySelector('.status').textContent,
}))"""


def words(text: str) -> str:
    """A text without its line breaks, which Markdown understands in its own way."""
    return " ".join(text.split())


class Tab:
    """The chat page, as somebody sees it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.errors: list[str] = []
        self.calls: list[str] = []
        """The addresses in the API that were asked for."""
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda request: self.calls.append(request.url))

    @property
    def turns(self) -> Locator:
        return self.page.locator("#turns > article")

    @property
    def newest(self) -> Locator:
        return self.turns.last

    @property
    def box(self) -> Locator:
        """Where messages are typed."""
        return self.page.get_by_label("Message", exact=True)

    def says(self, text: str, *, timeout: float = PATIENCE / 1000) -> None:
        """Wait until the newest answer is this text, whatever its line breaks."""
        expected = words(text)
        wait_until(
            lambda: [turn["output"] for turn in self.transcript()][-1:] == [expected],
            f"the answer {expected[:80]!r}",
            timeout=timeout,
        )

    @property
    def status(self) -> Locator:
        """What is said below the newest answer."""
        return self.newest.locator(".status")

    @property
    def stop(self) -> Locator:
        return self.page.get_by_role("button", name="Stop")

    def shows(self, count: int, status: str, *, timeout: float = PATIENCE) -> None:
        """Wait for so many turns, of which the newest has this status."""
        expect(self.turns).to_have_count(count, timeout=timeout)
        expect(self.newest).to_have_attribute("data-status", status, timeout=timeout)

    def send(self, text: str) -> None:
        """Type a message and press Enter."""
        self.box.fill(text)
        self.box.press("Enter")
        expect(self.box).to_have_value("", timeout=PATIENCE)

    def hide(self, hidden: bool) -> None:
        """What a browser says to a page that goes into the background, and comes back."""
        self.page.evaluate(
            """(value) => {
                Object.defineProperty(document, 'hidden', { value, configurable: true });
                document.dispatchEvent(new Event('visibilitychange'));
            }""",
            hidden,
        )

    def transcript(self) -> list[dict[str, Any]]:
        """Everything that stands on the page, word for word."""
        shown: list[dict[str, Any]] = self.page.evaluate(SAID)
        return shown


class Person:
    """Somebody's browser, and the API for what the page has no button for."""

    def __init__(self, context: BrowserContext) -> None:
        self.context = context
        self.tabs: list[Tab] = []
        context.set_default_timeout(PATIENCE)
        assert context.request.get("/").ok

    def call(self, method: str, path: str, **body: object) -> dict[str, Any]:
        """An API call that must succeed; its JSON."""
        cookies = {cookie["name"]: cookie["value"] for cookie in self.context.cookies()}
        headers = {"X-CSRFToken": cookies["csrftoken"]}
        answer = self.context.request.fetch(
            f"/api/{path}", method=method, headers=headers, data=body or None
        )
        assert answer.ok, f"{answer.status}: {answer.text()}"
        found: dict[str, Any] = answer.json()
        return found

    def conversation(self, agent: str) -> str:
        """A new conversation's id."""
        return str(self.call("POST", "conversations", agent=agent)["id"])

    def say(self, conversation: str, text: str, *, agent: str | None = None, **metadata) -> str:
        """Post a message past the page, never as a correction; the id of its run."""
        path = f"conversations/{conversation}/messages"
        body = {"text": text, "agent": agent, "metadata": metadata, "on_busy": "queue"}
        return str(self.call("POST", path, **body)["run"]["id"])

    def asked(self, agent: str, text: str = "go", **metadata) -> str:
        """A new conversation in which one message has been sent."""
        conversation = self.conversation(agent)
        self.say(conversation, text, **metadata)
        return conversation

    def turns(self, conversation: str) -> list[dict[str, Any]]:
        """A conversation's turns, as the API has them."""
        found: list[dict[str, Any]] = self.call("GET", f"conversations/{conversation}")["turns"]
        return found

    def tab(self, conversation: str = "") -> Tab:
        """A new tab with the conversation, or without any."""
        tab = Tab(self.context.new_page())
        self.tabs.append(tab)
        tab.page.goto(f"/c/{conversation}" if conversation else "/")
        return tab

    def close(self) -> None:
        self.context.close()
        assert [error for tab in self.tabs for error in tab.errors] == []


NewPerson = Callable[[System], Person]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium")
    if chromium is None:
        lacking = "needs the browser Chromium: apt-get install chromium"
        assert os.environ.get("CI") != "true", lacking
        pytest.skip(lacking)
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=QUIET)
        yield started
        started.close()


@pytest.fixture
def person_at(browser: Browser) -> Iterator[NewPerson]:
    """Makes a person in front of a system."""
    made: list[Person] = []

    def make(system: System) -> Person:
        made.append(Person(browser.new_context(base_url=system.gateway.url)))
        return made[-1]

    yield make
    for person in made:
        person.close()


@pytest.fixture
def person(browser: Browser, live: System, person_at: NewPerson) -> Person:
    return person_at(live)
