"""The systems that are measured."""

from bench.systems.base import System
from bench.systems.floor import Floor
from bench.systems.hand_rolled import HandRolled, HandRolledAof
from bench.systems.koda import Koda
from bench.systems.resumable_stream import ResumableStream

SYSTEMS: tuple[type[System], ...] = (Koda, Floor, HandRolled, HandRolledAof, ResumableStream)
