"""A run that a worker owns, and the reasons to stop what it does for it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from enum import Enum, auto

from runs.facts import RunNames
from runs.models import Run
from runs.runlog import RunLog


class Interrupt(Enum):
    """Why a try is stopped from outside."""

    RERUN = auto()
    LOST = auto()
    RELEASE = auto()


@dataclass(eq=False)
class Held:
    """A run that this worker owns."""

    run: Run
    log: RunLog
    started: float
    """When the current try began, in monotonic seconds."""
    last_chance: bool = False
    """Its workers died until this is its last try."""
    consumed: int = 0
    """Inputs that the agent has been given."""
    known_inputs: int = 0
    """Inputs that the run has, as far as this worker has heard."""
    interrupted: asyncio.Future[Interrupt] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    @property
    def names(self) -> RunNames:
        """What log lines about it tell."""
        return {
            "run": self.run.pk,
            "conversation": self.run.conversation_id,
            "attempt": self.run.attempt,
            "worker": self.log.worker,
        }

    def interrupt(self, why: Interrupt) -> None:
        """Stop the current try. A rerun gives way to the other two; else the first word stands."""
        if self._interrupted_for(Interrupt.RERUN):
            self._renew()
        if not self.interrupted.done():
            self.interrupted.set_result(why)

    @property
    def leaving(self) -> bool:
        """Asked to let the run go; one that has just ended may still be finished instead."""
        return self._interrupted_for(Interrupt.RELEASE)

    def hear_of_inputs(self, count: int) -> None:
        """The run has (at least) so many inputs: stop the try if it was given fewer."""
        self.known_inputs = max(self.known_inputs, count)
        if self.known_inputs > self.consumed and not self.interrupted.done():
            self.interrupt(Interrupt.RERUN)

    def consume(self, count: int) -> None:
        """The next try is given so many inputs, which serves a rerun that asked for them."""
        self.consumed = count
        if self._interrupted_for(Interrupt.RERUN) and self.known_inputs <= count:
            self._renew()

    def _interrupted_for(self, why: Interrupt) -> bool:
        return self.interrupted.done() and self.interrupted.result() is why

    def _renew(self) -> None:
        self.interrupted = asyncio.get_running_loop().create_future()
