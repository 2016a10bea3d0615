"""Wires: pure folds over the log, chosen with `?protocol=`."""

from collections.abc import Callable, Mapping
from uuid import UUID

from runs.events import StoredEvent
from streaming.protocols import agent, koda

Encode = Callable[[UUID, StoredEvent], bytes]

PROTOCOLS: Mapping[str, Encode] = {"koda": koda.encode, "agent": agent.encode}
