"""The systems that are measured."""

from bench.systems.base import System
from bench.systems.django_eventstream import DjangoEventstream
from bench.systems.durable_streams import DurableStreams
from bench.systems.floor import Floor
from bench.systems.hand_rolled import HandRolled, HandRolledAof
from bench.systems.koda import Koda
from bench.systems.resumable_stream import ResumableStream

SYSTEMS: tuple[type[System], ...] = (
    Koda,
    Floor,
    HandRolled,
    HandRolledAof,
    ResumableStream,
    DurableStreams,
    DjangoEventstream,
)
