"""PyPI `django-eventstream`, its events in Postgres, a worker that sends them."""

import subprocess
from dataclasses import asdict

from bench.fragments import Plan
from bench.install import EVENTSTREAM, peers_python
from bench.processes import ROOT, DurablePostgres, Redis
from bench.systems.base import System


class RoomyPostgres(DurablePostgres):
    """Each of this peer's streams keeps a connection."""

    def command(self) -> list[str]:
        return [*super().command(), "--max_connections=800"]


class DjangoEventstream(System):
    """A web process and a worker, joined by Redis."""

    name = "django_eventstream"
    title = "PyPI django-eventstream, in Postgres"
    persists = True
    lead = 0.04
    closes = False
    cannot = {"storm": "keeps a database connection for each stream, and there are not so many"}

    def start(self) -> None:
        python = peers_python(EVENTSTREAM)
        redis = Redis()
        self.server(redis)
        environment = {
            "DATABASE": self.server(RoomyPostgres()),
            "REDIS_PORT": str(redis.port),
            "PORT": str(self.port),
        }
        command = [python, "-m", "bench.peers.eventstream_project"]
        subprocess.run(
            [*command, "migrate"], cwd=ROOT, env=environment, check=True, capture_output=True
        )
        self.program(*command, "worker", **environment)
        self.program(*command, "web", **environment).wait_until(self.listening)

    async def begin(self, prepared: str, plan: Plan) -> str:
        run = (await self.api.call("POST", "/runs", asdict(plan)))["run"]
        return f"/runs/{run}/stream?lastEventId={run}:0"  # without it, it would begin at "now"
