"""npm `@durable-streams/server`: the reference server, and a worker with its client."""

from dataclasses import asdict

from bench.client import Api
from bench.fragments import Plan
from bench.install import node_modules
from bench.processes import HOST, ROOT, free_port
from bench.systems.base import System


class DurableStreams(System):
    """The worker appends over HTTP, clients read over HTTP."""

    name = "durable_streams"
    title = "npm @durable-streams/server"
    persists = True
    lead = 0.03
    closes = False

    def start(self) -> None:
        modules = node_modules()
        peers = ROOT / "bench" / "peers"
        data = self.directory / f"durable-streams-{self.port}"
        data.mkdir()
        server = self.program("node", peers / "durable_server.mjs", str(self.port), data, modules)
        server.wait_until(self.listening)
        self.api = Api(free_port())
        url = f"http://{HOST}:{self.port}"
        worker = self.program(
            "node", peers / "durable_worker.mjs", str(self.api.port), url, modules
        )
        worker.wait_until(self.api.answers)

    async def begin(self, prepared: str, plan: Plan) -> str:
        path = (await self.api.call("POST", "/runs", asdict(plan)))["path"]
        return f"{path}?offset=-1&live=sse"
