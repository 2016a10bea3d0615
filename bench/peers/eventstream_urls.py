"""The URLs of `bench.peers.eventstream_project`."""

import os
from uuid import uuid4

import django_eventstream
from django.http import HttpRequest, JsonResponse
from django.urls import include, path
from redis.asyncio import Redis

redis = Redis(port=int(os.environ["REDIS_PORT"]))


async def begin(request: HttpRequest) -> JsonResponse:
    """Queue the run for the worker."""
    run = uuid4().hex
    await redis.lpush("jobs", f"{run} {request.body.decode()}")
    return JsonResponse({"run": run})


urlpatterns = [
    path("runs", begin),
    path("runs/<run>/stream", include(django_eventstream.urls), {"format-channels": ["{run}"]}),
]
