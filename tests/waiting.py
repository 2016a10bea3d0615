"""Waiting for something to become true, instead of sleeping and hoping.

The only test module that may sleep.
"""

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

STEP = 0.005
"""Seconds between two looks."""

T = TypeVar("T")


def wait_until(condition: Callable[[], T], what: str, *, timeout: float = 10) -> T:
    """The first true value of `condition`; after `timeout` seconds fails naming `what`."""
    deadline = time.monotonic() + timeout
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout:g} s in vain for: {what}")
        time.sleep(STEP)
    return value


async def until(
    condition: Callable[[], T],
    what: str,
    *,
    timeout: float = 10,  # noqa: ASYNC109  (asyncio.timeout could not say what was missing)
) -> T:
    """`wait_until` that lets the event loop run."""
    deadline = time.monotonic() + timeout
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout:g} s in vain for: {what}")
        await asyncio.sleep(STEP)
    return value
