"""Group commit: number the fragments of all runs of a worker, store them, then show them.

A fragment that finds the worker idle is written at once. While one write is under way everything
that arrives joins the next one, and text that waits for the same write becomes one event: the
busier the worker, the fewer and fatter the rows. Only what is committed is published.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from uuid import UUID

from runs import metrics
from runs.errors import InputGrew, KodaError, Unwritable
from runs.events import Event, Said, StoredEvent, delta, numbered, size_of
from runs.facts import fact
from runs.runlog import RunLog, Terminal
from runs.states import Status
from runs.threads import passes
from runs.writes import Append, Ending

logger = logging.getLogger(__name__)

MAX_PENDING = 8000
"""Fragments of all runs together that may wait for the next write; then the agents wait. A big one
counts for as many as it has thousands of characters, so that it is 8 MB of text at most."""

MAX_JOINED = 64 * 1024
"""Characters that deltas may grow to when they are joined."""

Write = Callable[[Sequence[Append]], Awaitable[Sequence[KodaError | None]]]
Show = Callable[[UUID, Sequence[StoredEvent]], None]


class Emitter:
    """Writes for all runs of one worker: `write` stores a batch, `show` publishes it then."""

    def __init__(
        self, *, write: Write, show: Show, flush_fragments: int, flush_interval: float
    ) -> None:
        self._write = write
        self._show = show
        self._flush_fragments = flush_fragments
        self._flush_interval = flush_interval
        self._dirty: dict[RunLog, None] = {}
        self._pending = 0
        self._wake = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()

    # For the turns --------------------------------------------------------------------------

    async def emit(self, log: RunLog, said: Said) -> None:
        """Add an event or text; waits while too much is pending. Raises as `offer` does."""
        await self._room.wait()
        self._add(log, said)

    def offer(self, log: RunLog, said: Said) -> bool:
        """Add it, if not too much is pending. Raises what the log was refused for."""
        if self._pending >= MAX_PENDING:
            return False
        self._add(log, said)
        return True

    def _add(self, log: RunLog, said: Said) -> None:
        if log.refused is not None:
            raise log.refused
        if not log.waiting:
            self._touch(log)
            log.settled.clear()
        log.waiting.append(said)
        self._pending += _weight(said)
        if self._pending >= MAX_PENDING:
            self._room.clear()

    async def finish(
        self, log: RunLog, event: Event, *, to: Status, ending: Ending, consumed: int | None
    ) -> None:
        """Write everything pending and then the end, in one transaction with the status.

        `ending.output` is filled in here, from what the log adds up to. Raises InputGrew when
        a further input came first (the log goes on), any other refusal when it is not ours now.
        """
        if log.refused is not None:
            raise log.refused
        written = asyncio.get_running_loop().create_future()
        log.terminal = Terminal(event, to, ending, consumed, written)
        self._touch(log)
        await written

    async def discard(self, log: RunLog) -> None:
        """Forget what is not being written yet, and wait until the rest is stored."""
        self._drop(log)
        await log.settled.wait()

    async def settle(self, log: RunLog) -> None:
        """Wait until everything is stored. Raises what the log was refused for."""
        await log.settled.wait()
        if log.refused is not None:
            raise log.refused

    # The writing task -----------------------------------------------------------------------

    async def run(self) -> None:
        """Write until cancelled."""
        loop = asyncio.get_running_loop()
        started = loop.time() - self._flush_interval
        while True:
            await self._wake.wait()
            await asyncio.sleep(max(0.0, started + self._flush_interval - loop.time()))
            self._wake.clear()
            started = loop.time()
            batch = self._collect()
            if batch:
                with metrics.flush(batch.values()):
                    await self._store(batch)
                for log in batch:
                    log.in_flight = False
                    log.update_settled()

    def _collect(self) -> dict[RunLog, Append]:
        logs, self._dirty = self._dirty, {}
        batch = {log: self._entry(log) for log in logs if log.waiting or log.terminal}
        for log in batch:
            log.in_flight = True
        return batch

    def _entry(self, log: RunLog) -> Append:
        """The next events of this run, joined; with its end, when that is all that is left."""
        taken: list[Event] = []
        while log.waiting and len(taken) < self._flush_fragments:
            taken.append(self._next(log))
        if log.waiting:
            self._touch(log)
            return self._append(log, taken)
        return self._append(log, taken, log.terminal)

    def _next(self, log: RunLog) -> Event:
        """What comes next in this log; a text with all that follows it at once."""
        waiting = log.waiting
        first = waiting.popleft()
        self._weighs_less(_weight(first))
        if not isinstance(first, str):
            return first
        parts = [first]
        length, weight = len(first), 0
        while waiting and isinstance(text := waiting[0], str):
            length += len(text)
            if length > MAX_JOINED:
                break
            parts.append(text)
            weight += _weight(text)
            waiting.popleft()
        self._weighs_less(weight)
        return delta("".join(parts))

    def _append(
        self, log: RunLog, taken: Sequence[Event], terminal: Terminal | None = None
    ) -> Append:
        entry = Append(log.run_id, log.attempt, log.worker, log.seq, taken)
        if terminal is not None:
            return replace(
                entry,
                events=[*taken, terminal.event],
                to=terminal.to,
                consumed=terminal.consumed,
                ending=replace(terminal.ending, output=log.stored.text_with(taken)),
            )
        if not log.streaming and entry.has_text:
            return replace(entry, to=Status.STREAMING)
        return entry

    async def _store(self, batch: dict[RunLog, Append]) -> None:
        """Write the batch, however long the database is away: numbers must not be skipped."""
        delay = 0.05
        while True:
            try:
                answers = await self._write(list(batch.values()))
            except Exception as error:  # noqa: BLE001 - the event at fault is found and named
                if not passes(error):
                    await self._isolate(batch, error)
                    return
                logger.warning("flush of %d runs failed, trying again: %s", len(batch), error)
                await asyncio.sleep(delay)
                delay = min(1.0, delay * 2)
                continue
            for (log, entry), answer in zip(batch.items(), answers, strict=True):
                self._settle(log, entry, answer)
            return

    async def _isolate(self, batch: dict[RunLog, Append], error: Exception) -> None:
        """Something in the batch cannot be stored: narrow it down to the one event it is."""
        if len(batch) > 1:
            for log, entry in batch.items():
                await self._store({log: entry})
            return
        [(log, entry)] = batch.items()
        if len(entry.events) == 1:
            logger.error("run %s: event %d cannot be stored", log.run_id, entry.seq, exc_info=error)
            self._settle(log, entry, Unwritable(f"event {entry.seq} cannot be stored: {error}"))
            return
        events = list(entry.events)
        terminal = log.terminal if entry.ending is not None else None
        if terminal is not None:
            events.pop()
        pieces: list[tuple[list[Event], Terminal | None]] = [([event], None) for event in events]
        if terminal is not None:
            pieces.append(([], terminal))
        for taken, end in pieces:
            if log.refused is None:
                await self._store({log: self._append(log, taken, end)})

    def _settle(self, log: RunLog, entry: Append, answer: KodaError | None) -> None:
        if answer is None:
            self._stored(log, entry)
        elif isinstance(answer, InputGrew):
            self._resolve(log, answer)
        else:
            self._refuse(log, entry, answer)

    def _stored(self, log: RunLog, entry: Append) -> None:
        stored = numbered(entry.seq, entry.events)
        log.seq += len(stored)
        for event in stored:
            log.stored.apply(event)
        if entry.has_text:
            log.streaming = True
            log.pace.spoke()
        self._show(log.run_id, stored)
        if entry.ending is not None:
            self._resolve(log, None)

    def _refuse(self, log: RunLog, entry: Append, answer: KodaError) -> None:
        fact(
            logger,
            "late write refused",
            level=logging.WARNING,
            run=entry.run_id,
            attempt=entry.attempt,
            worker=entry.worker,
            first=entry.seq,
            last=entry.seq + len(entry.events) - 1,
            because=answer,
        )
        metrics.refused(answer)
        log.refused = answer
        self._drop(log)
        self._resolve(log, answer)
        log.on_refused(answer)

    def _resolve(self, log: RunLog, answer: KodaError | None) -> None:
        """Answer whoever waits for the end of this run."""
        terminal, log.terminal = log.terminal, None
        if terminal is None or terminal.written.done():
            return
        if answer is None:
            terminal.written.set_result(None)
        else:
            terminal.written.set_exception(answer)

    def _drop(self, log: RunLog) -> None:
        self._weighs_less(sum(map(_weight, log.waiting)))
        log.waiting.clear()
        log.update_settled()

    def _touch(self, log: RunLog) -> None:
        self._dirty[log] = None
        self._wake.set()

    def _weighs_less(self, change: int) -> None:
        self._pending -= change
        if self._pending < MAX_PENDING:
            self._room.set()


def _weight(said: Said) -> int:
    return 1 + (len(said) if isinstance(said, str) else size_of(said.data)) // 1000
