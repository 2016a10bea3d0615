"""The native wire: one frame for each event of the log, as it is stored."""

from uuid import UUID

from runs.events import StoredEvent
from streaming.wire import frame


def encode(run_id: UUID, event: StoredEvent) -> bytes:
    return frame(seq=event.seq, event=event.type, data=event.data)
