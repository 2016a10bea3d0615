"""A system of its own and a browser in front of it, for what is looked at and measured."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
HOST = "127.0.0.1"
AGENTS = ("planner", "overloaded", "long")
START_TIMEOUT = 60.0
FLAGS = ("--no-sandbox", "--disable-gpu", "--no-proxy-server", "--enable-precise-memory-info")


@contextlib.contextmanager
def served() -> Iterator[str]:
    """`manage.py serve` on a temporary database; its address."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="koda-page-") as directory:
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("KODA_")},
            "DATABASE_URL": f"sqlite:///{directory}/db.sqlite3",
            "DJANGO_SECRET_KEY": "of a page that is looked at",
            "KODA_AGENTS": ",".join(f"{name}=bench.page_agents.{name}" for name in AGENTS),
        }
        environment.pop("REDIS_URL", None)
        command = [sys.executable, "manage.py", "serve", "--host", HOST, "--port", str(port)]
        log = (Path(directory) / "log").open("wb")
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)
        try:
            address = f"http://{HOST}:{port}"
            _wait_for(address, process)
            yield address
        finally:
            process.terminate()
            process.wait(30)
            log.close()


def _wait_for(address: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_TIMEOUT
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{address}/readyz"):
            return
        time.sleep(0.1)
    raise RuntimeError("The server did not start.")


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """The system's Chromium."""
    program = shutil.which("chromium")
    if program is None:
        raise SystemExit("This needs Chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield browser
        browser.close()


class Visitor:
    """Somebody in front of the page, and the API for what the page has no button for."""

    def __init__(self, context: BrowserContext) -> None:
        self.context = context
        self.page: Page = context.new_page()
        self.page.goto("/")

    def call(self, method: str, path: str, **body: object) -> dict[str, Any]:
        cookies = {cookie["name"]: cookie["value"] for cookie in self.context.cookies()}
        answer = self.context.request.fetch(
            f"/api/{path}",
            method=method,
            headers={"X-CSRFToken": cookies["csrftoken"]},
            data=body or None,
        )
        if not answer.ok:
            raise RuntimeError(f"{method} {path}: {answer.status} {answer.text()}")
        found: dict[str, Any] = answer.json()
        return found

    def conversation(self, agent: str, title: str = "") -> str:
        return str(self.call("POST", "conversations", agent=agent, title=title)["id"])

    def open(self, conversation: str) -> None:
        self.page.goto(f"/c/{conversation}")

    def send(self, text: str) -> None:
        box = self.page.get_by_label("Message", exact=True)
        box.fill(text)
        self.page.get_by_role("button", name="Send").click()
        expect(box).to_have_value("")

    def wait_for(self, status: str, *, timeout: float = 60) -> None:
        """Until the newest turn is there. `timeout` in seconds."""
        newest = self.page.locator(f"#turns > article:last-child[data-status='{status}']")
        newest.wait_for(timeout=timeout * 1000)
