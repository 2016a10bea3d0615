"""manage.py gateway"""

import asyncio
from typing import Any

import uvloop
from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from runs import conf, ports
from streaming.server import make_server


class Command(BaseCommand):
    help = "Serve HTTP and the streams. SIGTERM ends streams politely; clients resume elsewhere."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, default=8000)

    def handle(self, *, host: str, port: int, **options: Any) -> None:  # noqa: ANN401
        if ports.port().local:
            self.stderr.write(
                "Without REDIS_URL workers cannot nudge this process: answers appear at the "
                f"speed of the sweep ({conf.get().sweep_interval:g} s)."
            )
        server = make_server(_import_path(settings.ASGI_APPLICATION), host=host, port=port)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(server.serve())


def _import_path(dotted: str) -> str:
    """`koda.asgi.application` as servers spell it."""
    module, _, name = dotted.rpartition(".")
    return f"{module}:{name}"
