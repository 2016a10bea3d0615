"""Ctrl-C and SIGTERM, as far as tidying up depends on when they are heard."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

ASKING = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def one_interrupt() -> Iterator[None]:
    """Both raise KeyboardInterrupt, once: asked twice, nothing would be tidied up."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        for number in ASKING:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    with _handled(interrupt):
        yield


@contextmanager
def heard_afterwards() -> Iterator[None]:
    """What comes meanwhile waits for the end of this: nothing is left half done."""
    heard: list[int] = []
    try:
        with _handled(lambda number, _frame: heard.append(number)):
            yield
    finally:
        for number in heard[:1]:
            signal.raise_signal(number)


@contextmanager
def _handled(handler: Callable[[int, FrameType | None], object]) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in ASKING}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
