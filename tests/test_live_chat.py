"""`manage.py chat` as somebody types it: on the database at hand, and against a server."""

from __future__ import annotations

import asyncio
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.live import Launcher, System
from tests.live_databases import ROOT

WORDS = "".join(f"w{number} " for number in range(10)) + "\n"


@asynccontextmanager
async def chat(system: System, *arguments: str) -> AsyncIterator[Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "manage.py",
        "chat",
        *arguments,
        cwd=ROOT,
        env=system.environment_of("chat"),
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def ends(process: Process) -> tuple[int, str, str]:
    out, notes = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), notes.decode()


@pytest.fixture(params=["here", "there"])
def where(request: pytest.FixtureRequest, live: System) -> list[str]:
    """Arguments for a run in this process's database, and for one behind a URL."""
    return ["--url", live.gateway.url] if request.param == "there" else []


async def test_the_answer_is_all_that_goes_to_stdout(live: System, where: list[str]):
    async with chat(live, "go", "--agent", "words", *where) as process:
        assert await ends(process) == (0, WORDS, "")


async def test_tools_go_to_stderr(live: System, where: list[str]):
    async with chat(live, "go", "--agent", "rounds", *where) as process:
        code, out, notes = await ends(process)
    assert code == 0
    assert "".join(out.split("\n")) == "".join(f"word {number} " for number in range(10))
    assert len(notes.splitlines()) == 20
    assert '[look_up {"round": 0}]' in notes


async def test_a_failed_run_exits_with_one_and_keeps_its_text(live: System, where: list[str]):
    async with chat(live, "go", "--agent", "failing", *where) as process:
        code, out, notes = await ends(process)
    assert (code, out) == (1, "So far so good. \n")
    assert notes == "[failed: overloaded: The model is overloaded.]\n"


async def test_an_unknown_agent_is_refused_with_its_name(live: System, where: list[str]):
    async with chat(live, "go", "--agent", "nobody", *where) as process:
        code, out, notes = await ends(process)
    assert (code, out) == (1, "")
    assert "nobody" in notes
    assert "Traceback" not in notes


async def test_ctrl_c_cancels_the_run(live: System, where: list[str]):
    before = live.database.rows("SELECT count(*) FROM koda_runs WHERE status = 'cancelled'")
    async with chat(live, "Where is my order 2077?", *where) as process:
        assert process.stdout
        await process.stdout.read(1)
        process.send_signal(signal.SIGINT)
        code, _, notes = await ends(process)
    assert code == 130
    assert "[cancelled (user)]" in notes
    after = live.database.rows("SELECT count(*) FROM koda_runs WHERE status = 'cancelled'")
    assert after[0][0] == before[0][0] + 1


async def test_a_token_lets_it_in_where_visitors_are_not_admitted(launch: Launcher):
    system = launch(KODA_ALLOW_ANONYMOUS="0")
    asked = ["go", "--agent", "words", "--url", system.gateway.url]
    async with chat(system, *asked) as process:
        code, out, notes = await ends(process)
    assert (code, out) == (1, "")
    assert "401" in notes
    async with chat(system, *asked, "--token", system.token("ada")) as process:
        assert await ends(process) == (0, WORDS, "")
    [(user,)] = system.database.rows(
        "SELECT u.username FROM auth_user u JOIN koda_conversations c ON c.owner_id = u.id"
    )
    assert user == "ada"


async def test_a_restarted_gateway_costs_no_word(launch: Launcher):
    system = launch(split=True)
    async with chat(system, "Where is my order 2077?", "--url", system.gateway.url) as process:
        assert process.stdout
        first = await process.stdout.read(1)
        system.gateway.kill()
        system.gateway.start()
        code, rest, _ = await ends(process)
    [(output,)] = system.database.rows("SELECT output FROM koda_runs")
    assert code == 0
    assert (first.decode() + rest).replace("\n", "") == output.replace("\n", "")


async def test_a_server_that_is_not_there_is_named_as_such(live: System):
    async with chat(live, "hi", "--url", "http://127.0.0.1:9") as process:
        code, _, notes = await ends(process)
    assert code == 1
    assert "the server cannot be reached" in notes
    assert "Traceback" not in notes
