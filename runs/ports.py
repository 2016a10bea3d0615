"""How runs tells the world what it wrote, without knowing who listens.

`settings.KODA_PUBLISH` names a class with the methods of `Port`. All of them are nudges: they
may be lost, repeated or late, and the log in the database stays the truth.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache
from typing import Protocol, cast
from uuid import UUID

from django.conf import settings
from django.utils.module_loading import import_string

from runs.events import StoredEvent

Batch = Mapping[UUID, Sequence[StoredEvent]]
"""Events that are in the log already, by run."""


class Port(Protocol):
    @property
    def local(self) -> bool:
        """Whether all this reaches only the process that it happens in."""

    async def publish(self, batch: Batch) -> None:
        """Send stored events to the watchers of their runs. May raise; may be slow."""

    def publish_soon(self, batch: Batch) -> None:
        """The same from synchronous code: neither waits nor raises."""

    def deleted_soon(self, run_id: UUID) -> None:
        """Tell the watchers of a run that it is gone: neither waits nor raises."""

    def nudge_soon(self) -> None:
        """Tell the workers that there is something to do: neither waits nor raises."""

    async def listen(self, on_nudge: Callable[[], None]) -> None:
        """Call `on_nudge` whenever a nudge arrives, until cancelled."""


PortFactory = Callable[[], Port]
Publish = Callable[[Batch], Awaitable[None]]


@cache
def _resolve(path: str) -> Port:
    return cast(PortFactory, import_string(path))()


def port() -> Port:
    """The configured port."""
    return _resolve(settings.KODA_PUBLISH)
