"""Wires: pure folds over the log, chosen with `?protocol=`."""

from collections.abc import Mapping

from streaming.protocols import agent, koda
from streaming.stretch import Encode

PROTOCOLS: Mapping[str, Encode] = {"koda": koda.encode, "agent": agent.encode}
