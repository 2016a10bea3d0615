"""manage.py worker"""

import asyncio
import signal
from collections.abc import Callable
from typing import Any

import uvloop
from django.core.management.base import BaseCommand, CommandError, CommandParser
from prometheus_client import start_http_server

from runs import conf, ports
from runs.leaving import leave_within
from runs.management.agents import configured_agents
from runs.worker import Worker, worker_name


class Command(BaseCommand):
    help = "Generate answers until told to stop. SIGTERM lets running ones finish first."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--concurrency", type=int, help="runs at once")
        parser.add_argument("--name", help="how logs and the admin call this worker")
        parser.add_argument("--metrics-port", type=int, help="serve /metrics there; off without")
        parser.add_argument("--metrics-host", default="127.0.0.1")

    def handle(self, *, concurrency: int | None, name: str | None, **options: Any) -> None:  # noqa: ANN401
        if concurrency is not None and concurrency < 1:
            raise CommandError("--concurrency must be at least 1")
        agents = configured_agents()
        if ports.port().local:
            self.stderr.write(
                "Without REDIS_URL nothing reaches the gateway directly: answers appear at the "
                f"speed of its sweep ({conf.get().sweep_interval:g} s)."
            )
        if options["metrics_port"] is not None:
            _serve_metrics(options["metrics_host"], options["metrics_port"])
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(
                work(
                    lambda: Worker(
                        name=worker_name(name),
                        agents=agents,
                        port=ports.port(),
                        settings=conf.get(),
                        concurrency=concurrency,
                    )
                )
            )


def _serve_metrics(host: str, port: int) -> None:
    """For Prometheus, on a thread of its own."""
    try:
        start_http_server(port, host)
    except OSError as error:
        raise CommandError(f"--metrics-port {port}: {error.strerror}.") from None


async def work(make: Callable[[], Worker]) -> None:
    """Run a worker until SIGINT or SIGTERM."""
    worker = make()
    loop = asyncio.get_running_loop()

    def stop() -> None:
        leave_within(worker.longest_end)
        worker.stop()

    for sig in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(sig, stop)
    await worker.run()
