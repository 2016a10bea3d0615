"""The floor: a generator in the web process. Nothing is stored, nothing is shared."""

from urllib.parse import quote

from bench.fragments import Plan
from bench.install import peers_python
from bench.systems.base import System


class Floor(System):
    """starlette on uvicorn."""

    name = "floor"
    title = "floor: generator in the web process"
    numbered = True
    cannot = {
        "storm": "stores nothing to come back to",
        "replay": "stores nothing to come back to",
    }

    def start(self) -> None:
        server = self.program(peers_python(), "-m", "bench.peers.floor", str(self.port))
        server.wait_until(self.listening)

    async def begin(self, prepared: str, plan: Plan) -> str:
        return f"/stream?plan={quote(plan.to_json())}"
