"""Ending in time, whatever is in the way.

A thread that waits for a database which does not answer cannot be interrupted, and a process waits
for its threads: told to stop during an outage, it would stand for as long as the outage lasts.
"""

from __future__ import annotations

import logging
import os
import threading
import time

logger = logging.getLogger(__name__)


def leave_within(seconds: float) -> None:
    """Let the process end by itself for so long; then end it. Returns at once.

    What is cut off then are threads in the middle of a transaction, which the database rolls back;
    runs that could not be handed back are taken over when their leases end.
    """
    threading.Thread(target=_leave, args=[seconds], name="koda-leave", daemon=True).start()


def _leave(seconds: float) -> None:
    time.sleep(seconds)
    logger.warning("still here after %g s: leaving threads behind that do not end", seconds)
    logging.shutdown()
    os._exit(0)
