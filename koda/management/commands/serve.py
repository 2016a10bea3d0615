"""manage.py serve"""

import asyncio
from typing import Any

import uvloop
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandParser

from koda.embedded import embedded_worker
from runs.agents.registry import LoadedAgent
from runs.management.agents import configured_agents
from runs.worker import Worker
from streaming.server import Server, make_server


class Command(BaseCommand):
    help = "Migrate, then run gateway and worker in one process."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, default=8000)

    def handle(self, *, host: str, port: int, **options: Any) -> None:  # noqa: ANN401
        agents = configured_agents()
        call_command("migrate", verbosity=0, interactive=False)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(self._serve(host, port, agents))

    async def _serve(self, host: str, port: int, agents: dict[str, LoadedAgent]) -> None:
        worker = embedded_worker("serve", agents)
        server = make_server("koda.asgi:application", host=host, port=port)
        server.patience += worker.longest_end
        server.on_started = lambda port: self.stdout.write(
            f"Koda is at http://{host}:{port}/  (Ctrl-C stops it)"
        )
        async with asyncio.TaskGroup() as group:
            working = group.create_task(worker.run(), name="worker")
            working.add_done_callback(lambda _: server.end())
            group.create_task(self._gateway(server, worker), name="gateway")

    async def _gateway(self, server: Server, worker: Worker) -> None:
        try:
            await server.serve()
        finally:
            worker.stop()
