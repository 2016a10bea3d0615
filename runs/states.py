"""The run state machine, as data.

    pending ──▶ running ──▶ streaming
       │           │            │
       └──────┬────┴──────┬─────┘
              ▼           ▼
        failed, cancelled, done (done only from running or streaming)

`docs/states.md` explains every arrow; a test holds the diagram there and this table equal.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from runs.errors import IllegalTransition


class Status(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    STREAMING = "streaming"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


TRANSITIONS: Mapping[Status, frozenset[Status]] = MappingProxyType(
    {
        Status.PENDING: frozenset({Status.RUNNING, Status.CANCELLED, Status.FAILED}),
        Status.RUNNING: frozenset({Status.STREAMING, Status.DONE, Status.FAILED, Status.CANCELLED}),
        Status.STREAMING: frozenset({Status.DONE, Status.FAILED, Status.CANCELLED}),
        Status.DONE: frozenset(),
        Status.FAILED: frozenset(),
        Status.CANCELLED: frozenset(),
    }
)

ACTIVE = frozenset({Status.RUNNING, Status.STREAMING})
"""A worker holds the run."""

OPEN = ACTIVE | {Status.PENDING}
"""The run is not over yet."""

TERMINAL = frozenset({Status.DONE, Status.FAILED, Status.CANCELLED})
"""No way out."""


def sources(to: Status) -> frozenset[Status]:
    """The statuses from which a run may move to `to`. Every guarded UPDATE's WHERE is this set."""
    return frozenset(source for source, targets in TRANSITIONS.items() if to in targets)


def check_move(source: Status, to: Status) -> None:
    """Raise IllegalTransition unless the table has this move."""
    if source not in sources(to):
        raise IllegalTransition(f"a run cannot move from {source} to {to}")
