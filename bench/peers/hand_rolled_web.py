"""python -m bench.peers.hand_rolled_web PORT REDIS_URL: what one writes by hand, the web part."""

import sys
from collections.abc import AsyncIterator
from uuid import uuid4

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import StreamingResponse
from redis.asyncio import Redis

redis = Redis.from_url(sys.argv[2], max_connections=10_000, socket_timeout=None)
app = FastAPI()


@app.post("/runs")
async def begin(request: Request) -> dict[str, str]:
    """Queue the run for the worker."""
    run = uuid4().hex
    body = (await request.body()).decode()
    await redis.lpush("jobs", f"{run} {body}")
    return {"run": run}


@app.get("/runs/{run}/stream")
async def stream(run: str) -> StreamingResponse:
    return StreamingResponse(_frames(run), media_type="text/event-stream")


async def _frames(run: str) -> AsyncIterator[str]:
    yield ": open\n\n"
    last = "0"
    while True:
        found = await redis.xread({f"run:{run}": last}, count=100, block=15_000)
        if not found:
            yield ": ping\n\n"
            continue
        for id, fields in found[0][1]:
            last = id
            if b"end" in fields:
                return
            yield f"id: {id.decode()}\nevent: delta\ndata: {fields[b'data'].decode()}\n\n"


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), access_log=False)
