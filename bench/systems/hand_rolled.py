"""What many write by hand: FastAPI, a worker, and a Redis stream for each run."""

from dataclasses import asdict

from bench.fragments import Plan
from bench.install import peers_python
from bench.processes import DurableRedis, Redis
from bench.systems.base import System


class HandRolled(System):
    """XADD for each fragment, XREAD for each client."""

    name = "hand_rolled"
    title = "written by hand: FastAPI, XADD, XREAD"
    redis: type[Redis] = Redis

    def start(self) -> None:
        python = peers_python()
        url = self.server(self.redis())
        self.program(python, "-m", "bench.peers.hand_rolled_worker", url)
        web = self.program(python, "-m", "bench.peers.hand_rolled_web", str(self.port), url)
        web.wait_until(self.listening)

    async def begin(self, prepared: str, plan: Plan) -> str:
        run = (await self.api.call("POST", "/runs", asdict(plan)))["run"]
        return f"/runs/{run}/stream"


class HandRolledAof(HandRolled):
    """The same, with what Redis offers for not losing anything."""

    name = "hand_rolled_aof"
    title = "the same, appendfsync always"
    persists = True
    redis = DurableRedis
