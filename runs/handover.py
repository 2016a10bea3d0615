"""Letting go of runs that this worker does not finish itself."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

from runs.attempt import Failure
from runs.events import Data
from runs.facts import fact
from runs.models import Run
from runs.threads import DatabaseThreads, patiently
from runs.writes import Ended

logger = logging.getLogger("runs.worker")  # one name for all that a worker says

NUDGE_DELAY = 0.05
"""Seconds after the end of a lease at which workers are told: not before it, by any clock."""


class Handover:
    """One worker's way to hand runs back, or to end those that nobody can go on with."""

    def __init__(
        self,
        *,
        worker: str,
        writes: DatabaseThreads,
        nudge: Callable[[], None],
        announce: Callable[[Ended], None],
    ) -> None:
        """`nudge` tells all workers that there is something to do."""
        self._worker = worker
        self._writes = writes
        self._nudge = nudge
        self._announce = announce

    async def release(self, run: Run, backoff: float, error: Data | None) -> None:
        """Let another attempt begin in `backoff` seconds, with `error` as what this one met."""
        released = await patiently(
            lambda: self._writes(
                Run.objects.release,
                run.pk,
                attempt=run.attempt,
                backoff=timedelta(seconds=backoff),
                error=error,
            )
        )
        if not released:
            return
        fact(
            logger,
            "let go",
            run=run.pk,
            conversation=run.conversation_id,
            attempt=run.attempt,
            worker=self._worker,
            seconds=backoff,
        )
        if backoff:
            asyncio.get_running_loop().call_later(backoff + NUDGE_DELAY, self._nudge)
        else:
            self._nudge()

    async def abandon(self, run: Run, failure: Failure) -> None:
        """Fail a run whose log takes nothing more; one that was deleted meanwhile is left."""
        with suppress(Run.DoesNotExist):
            ended = await patiently(
                lambda: self._writes(
                    Run.objects.fail,
                    run.pk,
                    code=failure.code,
                    message=failure.message,
                    attempt=run.attempt,
                )
            )
            self._announce(ended)
