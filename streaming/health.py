"""Is this process alive, and able to serve?"""

import asyncio

from asgiref.sync import sync_to_async
from django.db import DatabaseError, connection, transaction
from django.http import HttpRequest, JsonResponse

from streaming import groups

LAYER_PATIENCE = 1.0
"""Seconds that the channel layer has to take a message."""


async def healthz(request: HttpRequest) -> JsonResponse:
    """Alive."""
    return JsonResponse({"status": "ok"})


async def readyz(request: HttpRequest) -> JsonResponse:
    """Able to serve: only the database decides, a layer that is down merely delays."""
    try:
        await sync_to_async(_ask_database)()
    except DatabaseError:
        return JsonResponse({"status": "unavailable", "database": "down"}, status=503)
    try:
        async with asyncio.timeout(LAYER_PATIENCE):
            await groups.send([("koda.health", {"type": "koda.health"})])
    except Exception:  # noqa: BLE001 - whatever ails the layer, it only delays
        return JsonResponse({"status": "ok", "database": "ok", "layer": "degraded"})
    return JsonResponse({"status": "ok", "database": "ok", "layer": "ok"})


def _ask_database() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


healthz = transaction.non_atomic_requests(healthz)
readyz = transaction.non_atomic_requests(readyz)
