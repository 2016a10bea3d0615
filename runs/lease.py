"""Leases: renewed and, when they run out, taken over, on a thread that no agent can block."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.db import connection

from runs import metrics
from runs.facts import fact
from runs.models import Run
from runs.writes import Claimed, Ended

logger = logging.getLogger(__name__)

GRACE = 10.0
"""Seconds past the run time-out during which a lease is still renewed; then its worker hangs."""


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease to renew; `held_since` is in monotonic seconds."""

    run_id: UUID
    attempt: int
    held_since: float
    last_chance: bool = False
    """Its workers died until this is its last try."""


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """Seconds."""

    lease: float
    heartbeat: float
    sweep_interval: float
    run_timeout: float


class LeaseKeeper:
    """The heartbeat and the sweep of one worker.

    `held` says what to renew. `free` tells how many expired runs this worker may take, `adopt`
    receives those it took and `announce` the ones that nobody may try again. `report` says with
    every heartbeat that this worker lives. All of them are called on the keeper's thread.
    """

    def __init__(
        self,
        *,
        worker: str,
        times: LeaseTimes,
        max_attempts: int,
        held: Callable[[], Sequence[Lease]],
        free: Callable[[], int],
        adopt: Callable[[Claimed], None],
        announce: Callable[[Ended], None],
        report: Callable[[], None] = lambda: None,
    ) -> None:
        self._worker = worker
        self._times = times
        self._lease = timedelta(seconds=times.lease)
        self._max_attempts = max_attempts
        self._held = held
        self._free = free
        self._adopt = adopt
        self._announce = announce
        self._report = report
        self._resting = False
        self._sweeping = threading.Lock()
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name="koda-lease", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def sweep_soon(self) -> None:
        """There may be something to take over."""
        self._wake.set()

    def rest(self) -> None:
        """Take nothing over from now on; returns once nothing is being taken."""
        self._resting = True
        with self._sweeping:
            return

    def stop(self) -> None:
        """End the thread and wait for it."""
        self._stop.set()
        self._wake.set()
        self._thread.join()

    def _run(self) -> None:
        beat_at = time.monotonic()
        while not self._stop.is_set():
            due = min(self._times.sweep_interval, beat_at - time.monotonic())
            self._wake.wait(max(0.0, due))
            self._wake.clear()
            try:
                if time.monotonic() >= beat_at:
                    self.beat()
                    beat_at = time.monotonic() + self._times.heartbeat
                if not self._stop.is_set():
                    self.sweep()
            except Exception as error:  # noqa: BLE001 - a keeper that dies loses every lease
                logger.warning("leases of %s not looked after: %s", self._worker, error)
                connection.close()
                self._stop.wait(0.5)
        connection.close()

    def beat(self) -> None:
        """Renew what is held, but nothing whose try should have timed out long ago."""
        oldest = time.monotonic() - self._times.run_timeout - GRACE
        healthy = [(held.run_id, held.attempt) for held in self._held() if held.held_since > oldest]
        if healthy:
            Run.objects.renew(healthy, lease=self._lease)
        self._report()

    def sweep(self) -> None:
        """Take over or end the runs whose lease is over, one in a transaction."""
        with self._sweeping:
            held = list(self._held())
            mine = {lease.run_id for lease in held}
            room = 0 if self._resting else self._free()
            last_chances = sum(lease.last_chance for lease in held)
            for run in Run.objects.expired().order_by("lease_expires_at")[:100]:
                if run.pk in mine or self._resting:
                    continue
                try:
                    took = self._look_after(run, room=room, last_chances=last_chances)
                except Exception:
                    logger.exception("run %s: not taken over", run.pk)
                    connection.close()
                    continue
                room -= took is not None
                last_chances += took is not None and took.last_chance(self._max_attempts)

    def _look_after(self, run: Run, *, room: int, last_chances: int) -> Claimed | None:
        """One run without a worker. Returns it if it is this worker's now.

        A run whose workers died until it has one try left may be what kills them: of those, a
        worker drives one at a time, so that the innocent among them survive.
        """
        died = run.claimed_by != ""
        if run.tries >= self._max_attempts and not run.is_handed_back:
            self._give_up(run)
            return None
        if room <= 0 or (died and run.tries + 1 >= self._max_attempts and last_chances > 0):
            return None
        return self._take(run)

    def _take(self, run: Run) -> Claimed | None:
        claimed = Run.objects.take_over(run.pk, worker=self._worker, lease=self._lease)
        if claimed is None:
            return None
        metrics.taken_over(run.claimed_by, claimed)
        fact(
            logger,
            "taken over",
            level=logging.WARNING,
            run=run.pk,
            conversation=run.conversation_id,
            attempt=claimed.run.attempt,
            worker=self._worker,
            tries=claimed.run.tries,
            previous=run.claimed_by or "nobody",
        )
        self._adopt(claimed)
        return claimed

    def _give_up(self, run: Run) -> None:
        ended = Run.objects.fail_expired(
            run.pk,
            code="worker_lost",
            message=f"The worker was lost {run.tries} times.",
        )
        if ended is not None:
            fact(
                logger,
                "given up",
                level=logging.ERROR,
                run=run.pk,
                conversation=run.conversation_id,
                attempt=run.attempt,
                worker=self._worker,
                tries=run.tries,
                previous=run.claimed_by or "nobody",
            )
            self._announce(ended)
