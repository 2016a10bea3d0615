"""The agent event protocol: what the page's reducer reads. All frames are plain messages."""

from uuid import UUID

from runs.events import StoredEvent
from runs.reducer import to_agent_event
from streaming.wire import frame


def encode(run_id: UUID, event: StoredEvent) -> bytes:
    message = to_agent_event(str(run_id), event.seq, event.type, event.data)
    return frame(seq=event.seq, event=None, data=message)
