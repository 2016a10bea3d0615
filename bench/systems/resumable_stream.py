"""npm `resumable-stream`: the generator in the web process, other watchers through Redis."""

from urllib.parse import quote
from uuid import uuid4

from bench.fragments import Plan
from bench.install import node_modules
from bench.processes import ROOT, Redis
from bench.systems.base import System

OVER = "keeps a run in its producer's memory, and only until its end"


class ResumableStream(System):
    """The first watcher starts the run, the others join it."""

    name = "resumable_stream"
    title = "npm resumable-stream"
    numbered = True
    cannot = {"storm": OVER, "replay": OVER}

    def start(self) -> None:
        script = ROOT / "bench" / "peers" / "resumable_stream.mjs"
        modules = node_modules()
        server = self.program("node", script, str(self.port), self.server(Redis()), modules)
        server.wait_until(self.listening)

    async def begin(self, prepared: str, plan: Plan) -> str:
        return f"/{uuid4().hex}?plan={quote(plan.to_json())}"
