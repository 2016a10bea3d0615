"""Time-ordered identifiers."""

import os
import time
import uuid


def uuid7() -> uuid.UUID:
    """A UUID version 7 (RFC 9562, section 5.7): 48 bits of milliseconds, then random bits.

    Newer rows get greater ids, so that they land at the right edge of an index and a table can
    be partitioned by range. Nothing is decided by the time in it.
    """
    milliseconds = time.time_ns() // 1_000_000
    value = (milliseconds & 0xFFFF_FFFF_FFFF) << 80 | int.from_bytes(os.urandom(10), "big")
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return uuid.UUID(int=value)
