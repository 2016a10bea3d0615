"""The examples of docs/api.md, run as they stand there, against a running system."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass

import httpx
import pytest

from tests.live import System
from tests.live_databases import ROOT
from tests.waiting import wait_until

PAGE = (ROOT / "docs" / "api.md").read_text()
BLOCKS = re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
EXAMPLE = re.compile(r"^(koda .*?)\n# (\d{3})", re.MULTILINE | re.DOTALL)
EXAMPLES = [found for block in BLOCKS for found in EXAMPLE.findall(block)]
[ALIAS] = re.findall(r"^alias koda=.*$", PAGE, re.MULTILINE)


@dataclass(frozen=True)
class Shell:
    """Where the examples are typed: with a token, a conversation, and a run in it that is over."""

    variables: dict[str, str]

    def status_of(self, command: str) -> str:
        """Type an example, and tell the status that curl saw."""
        typed = f"shopt -s expand_aliases\n{ALIAS}\n{command}"
        done = subprocess.run(
            ["bash", "-c", typed.replace("curl ", 'curl -sS -o /dev/null -w "%{http_code}" ', 1)],
            env=os.environ | self.variables,
            capture_output=True,
            text=True,
            check=False,
        )
        assert not done.stderr or "returned error" in done.stderr, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def token(live: System) -> str:
    return live.token("reader")


@pytest.fixture
def shell(live: System, token: str) -> Shell:
    if not shutil.which("curl"):
        assert os.environ.get("CI") != "true", "curl is missing: apt-get install curl"
        pytest.skip("needs curl: apt-get install curl")
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=f"{live.gateway.url}/api", headers=headers) as http:
        conversation = http.post("/conversations", json={}).json()["id"]
        said = {"text": "hello", "agent": "words", "metadata": {"count": 20}}
        sent = http.post(f"/conversations/{conversation}/messages", json=said).json()
        run = sent["run"]["id"]
        wait_until(lambda: live.status(run) == "done", "the run's end")
    return Shell(
        {"TOKEN": token, "KODA": live.gateway.url, "CONVERSATION": conversation, "RUN": run}
    )


def test_the_page_has_an_example_for_every_call():
    """Conversations 5, messages 1 and a refusal, runs 5, agents 1."""
    assert len(EXAMPLES) == 13


@pytest.mark.parametrize(("command", "status"), EXAMPLES, ids=[e[0][:60] for e in EXAMPLES])
def test_an_example_answers_what_is_written_below_it(shell: Shell, command: str, status: str):
    assert shell.status_of(command) == status
