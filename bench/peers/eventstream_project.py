"""A Django project with nothing but `django_eventstream`, its storage in Postgres.

DATABASE, REDIS_PORT and PORT come from the environment.

    python -m bench.peers.eventstream_project migrate | web | worker
"""

import asyncio
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import django
import uvloop
from django.conf import settings

from bench.fragments import Plan, fragments

THREADS = 20
"""Fragments that are stored at the same time."""

database = urlsplit(os.environ["DATABASE"])
settings.configure(
    SECRET_KEY="a key for measurements",
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF="bench.peers.eventstream_urls",
    INSTALLED_APPS=["django_eventstream"],
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": database.path[1:],
            "USER": database.username,
            "PASSWORD": database.password,
            "HOST": database.hostname,
            "PORT": database.port,
            "CONN_MAX_AGE": None,
        }
    },
    EVENTSTREAM_REDIS={"host": "127.0.0.1", "port": int(os.environ["REDIS_PORT"])},
    EVENTSTREAM_STORAGE_CLASS="django_eventstream.storage.DjangoModelStorage",
    USE_TZ=True,
)
django.setup()


async def work() -> None:
    """Take runs from the queue and drive all of them at once."""
    from redis.asyncio import Redis  # noqa: PLC0415 - only the worker

    redis = Redis(port=int(os.environ["REDIS_PORT"]), socket_timeout=None)
    threads = ThreadPoolExecutor(THREADS)
    tasks = set()
    while True:
        _, job = await redis.brpop("jobs")
        run, _, plan = job.decode().partition(" ")
        task = asyncio.create_task(drive(threads, run, Plan.from_json(plan)))
        tasks.add(task)
        task.add_done_callback(tasks.discard)


async def drive(threads: ThreadPoolExecutor, run: str, plan: Plan) -> None:
    from django_eventstream import send_event  # noqa: PLC0415 - after the settings

    loop = asyncio.get_running_loop()

    def send(data: Any) -> None:  # noqa: ANN401
        send_event(run, "message", data)

    async for text in fragments(plan):
        await loop.run_in_executor(threads, send, {"text": text})


def main(command: str) -> None:
    if command == "migrate":
        from django.core.management import call_command  # noqa: PLC0415 - after the settings

        call_command("migrate", verbosity=0)
    elif command == "worker":
        uvloop.run(work())
    else:
        import uvicorn  # noqa: PLC0415 - only the web process
        from django.core.asgi import get_asgi_application  # noqa: PLC0415 - after the settings

        port = int(os.environ["PORT"])
        uvicorn.run(get_asgi_application(), host="127.0.0.1", port=port, access_log=False)


if __name__ == "__main__":
    main(sys.argv[1])
