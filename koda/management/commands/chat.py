"""manage.py chat"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from typing import Any

import uvloop
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser

from koda.embedded import embedded_worker
from koda.terminal.here import Here
from koda.terminal.printer import Printer
from koda.terminal.server import Server
from koda.terminal.session import Session
from runs import ports
from runs.agents.registry import LoadedAgent
from runs.management.agents import configured_agents


class Command(BaseCommand):
    help = (
        "Ask an agent and print its answer as it is written; tools and everything else go to "
        "stderr. Ctrl-C stops the answer. Exit code: 0 done, 1 failed, 3 stopped by somebody "
        "else, 130 stopped by Ctrl-C."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("text")
        parser.add_argument("--agent", help="who answers")
        parser.add_argument("--url", help="a server to ask instead of the database at hand")
        parser.add_argument(
            "--token",
            default=os.environ.get("KODA_TOKEN"),
            help="for --url; better in KODA_TOKEN, for other users see command lines",
        )

    def handle(self, *, text: str, agent: str | None, **options: Any) -> None:  # noqa: ANN401
        url, token = options["url"], options["token"]
        if url and not url.startswith(("http://", "https://")):
            raise CommandError("--url must begin with http:// or https://.")
        for name in ("runs", "streaming"):  # an answer is not to be read between log lines
            logging.getLogger(name).setLevel(logging.ERROR)
        agents = {} if url else _agents_here()
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            code = runner.run(_chat(text, agent, url=url, token=token, agents=agents))
        if code:
            sys.exit(code)


def _agents_here() -> dict[str, LoadedAgent]:
    """What the worker of this process can answer with; none where workers run elsewhere."""
    if not ports.port().local:
        return {}
    agents = configured_agents()
    call_command("migrate", verbosity=0, interactive=False)
    return agents


async def _chat(
    text: str,
    agent: str | None,
    *,
    url: str | None,
    token: str | None,
    agents: dict[str, LoadedAgent],
) -> int:
    printer = Printer(sys.stdout, sys.stderr)
    if url:
        async with Server(url, token) as server:
            return await Session(server, printer).run(text, agent)
    async with _working(agents) if agents else nullcontext():
        return await Session(Here(), printer).run(text, agent)


@asynccontextmanager
async def _working(agents: dict[str, LoadedAgent]) -> AsyncIterator[None]:
    """With a worker in this process."""
    worker = embedded_worker("chat", agents)
    async with asyncio.TaskGroup() as group:
        group.create_task(worker.run(), name="worker")
        try:
            yield
        finally:
            worker.stop()
