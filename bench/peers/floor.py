"""python -m bench.peers.floor PORT"""

import sys
from collections.abc import AsyncIterator

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from bench.fragments import Plan, fragments, frame


async def stream(request: Request) -> StreamingResponse:
    return StreamingResponse(
        _frames(Plan.from_json(request.query_params["plan"])), media_type="text/event-stream"
    )


async def _frames(plan: Plan) -> AsyncIterator[bytes]:
    yield b": open\n\n"
    number = 0
    async for text in fragments(plan):
        yield frame(number, text)
        number += 1


app = Starlette(routes=[Route("/stream", stream)])

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), access_log=False)
