"""The channel layer's groups: one for each run, one for the workers, one to test the line.

Whatever is sent here is a nudge. It may be lost, come twice or in another order.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from asgiref.sync import async_to_sync
from channels.layers import InMemoryChannelLayer, get_channel_layer

from runs.events import StoredEvent, size_of

logger = logging.getLogger(__name__)

WORKERS = "koda.workers"
MAX_CARRIED = 256 * 1024
"""Characters of text and tool data that one message carries; beyond that watchers read the log."""

REJOIN = 30.0
"""Seconds between two times that a worker joins its group."""

Message = dict[str, Any]


def run_group(run_id: UUID) -> str:
    """The group of everybody who watches this run."""
    return f"koda.out.{run_id}"


def events_message(run_id: UUID, stored: Sequence[StoredEvent]) -> Message:
    """Stored events on their way to the watchers; huge ones go as their numbers only."""
    message: Message = {"type": "koda.events", "run": str(run_id), "next": stored[-1].seq + 1}
    if sum(size_of(event.data) for event in stored) <= MAX_CARRIED:
        message["events"] = [[event.seq, event.type, event.data] for event in stored]
    return message


def layer() -> Any:  # noqa: ANN401 - channel layers share no base class
    return get_channel_layer()


async def send(messages: Sequence[tuple[str, Message]]) -> None:
    """Send each (group, message), in one round trip where the layer can."""
    channel_layer = layer()
    send_many = getattr(channel_layer, "group_send_many", None)
    if send_many is not None:
        await send_many(messages)
        return
    for group, message in messages:
        await channel_layer.group_send(group, message)


_home: list[asyncio.AbstractEventLoop] = []


def at_home_here() -> None:
    """This event loop is where the process keeps its channel layer: threads send through it.

    The in-memory layer belongs to one loop, and a loop of one's own would mean a Redis
    connection of one's own for every call.
    """
    _home[:] = [asyncio.get_running_loop()]


def send_soon(messages: Sequence[tuple[str, Message]]) -> None:
    """Send from synchronous code: neither waits (where there is a loop) nor raises."""
    loop = _home[0] if _home and _home[0].is_running() else None
    if loop is not None:
        asyncio.run_coroutine_threadsafe(_send_or_log(messages), loop)
        return
    try:
        async_to_sync(_send_or_log)(messages)
    except RuntimeError as error:  # called on an event loop that is not this layer's home
        logger.warning("not sent: %s", error)


async def _send_or_log(messages: Sequence[tuple[str, Message]]) -> None:
    try:
        await send(messages)
    except Exception as error:  # noqa: BLE001 - a nudge may be lost
        logger.warning("%d nudges not sent: %s", len(messages), error)


class ChannelPublisher:
    """`runs.ports.Port` over the channel layer."""

    @property
    def local(self) -> bool:
        return isinstance(layer(), InMemoryChannelLayer)

    async def publish(self, batch: Mapping[UUID, Sequence[StoredEvent]]) -> None:
        await send(_messages(batch))

    def publish_soon(self, batch: Mapping[UUID, Sequence[StoredEvent]]) -> None:
        send_soon(_messages(batch))

    def deleted_soon(self, run_id: UUID) -> None:
        send_soon([(run_group(run_id), {"type": "koda.gone", "run": str(run_id)})])

    def nudge_soon(self) -> None:
        send_soon([(WORKERS, {"type": "koda.nudge"})])

    async def listen(self, on_nudge: Callable[[], None]) -> None:
        """Call `on_nudge` for every nudge, until cancelled; a layer that is down is retried."""
        at_home_here()
        while True:
            try:
                await _listen(on_nudge)
            except Exception as error:  # noqa: BLE001 - a layer that is down comes back
                logger.warning("nudges not heard, trying again: %s", error)
                await asyncio.sleep(1.0)


async def _listen(on_nudge: Callable[[], None]) -> None:
    channel_layer = layer()
    channel = await channel_layer.new_channel("koda.worker")
    await channel_layer.group_add(WORKERS, channel)
    staying = asyncio.create_task(_stay_among_workers(channel), name="koda-nudges-stay")
    try:
        on_nudge()
        while True:
            await channel_layer.receive(channel)
            on_nudge()
    finally:
        staying.cancel()


async def _stay_among_workers(channel: str) -> None:
    """Join again and again: the in-memory layer forgets members in time."""
    while True:
        await asyncio.sleep(REJOIN)
        try:
            await layer().group_add(WORKERS, channel)
        except Exception as error:  # noqa: BLE001 - a layer that is down comes back
            logger.warning("nudges: group not joined again: %s", error)


def _messages(batch: Mapping[UUID, Sequence[StoredEvent]]) -> list[tuple[str, Message]]:
    return [(run_group(run_id), events_message(run_id, stored)) for run_id, stored in batch.items()]
