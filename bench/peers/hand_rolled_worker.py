"""python -m bench.peers.hand_rolled_worker REDIS_URL: what one writes by hand, the worker."""

import asyncio
import json
import sys

import uvloop
from redis.asyncio import Redis

from bench.fragments import Plan, fragments

KEPT = 3600
"""Seconds that a run's stream is kept."""


async def main(url: str) -> None:
    redis = Redis.from_url(url, max_connections=1000, socket_timeout=None)
    tasks = set()
    while True:
        _, job = await redis.brpop("jobs")
        run, _, plan = job.decode().partition(" ")
        task = asyncio.create_task(drive(redis, run, Plan.from_json(plan)))
        tasks.add(task)
        task.add_done_callback(tasks.discard)


async def drive(redis: Redis, run: str, plan: Plan) -> None:
    key = f"run:{run}"
    async for text in fragments(plan):
        await redis.xadd(key, {"data": json.dumps({"text": text})})
    await redis.xadd(key, {"end": "1"})
    await redis.expire(key, KEPT)


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1]))
