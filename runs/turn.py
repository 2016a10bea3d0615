"""One claimed run, from its first call of the agent to its terminal event."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from logging import WARNING
from typing import Any

from runs import events, metrics
from runs.agents import Turn
from runs.agents.registry import LoadedAgent
from runs.attempt import Attempt, Completed, Failure, Outcome
from runs.emitter import Emitter
from runs.errors import InputGrew, Unwritable, WriteRefused
from runs.events import Data, RestartReason
from runs.facts import fact
from runs.held import Held, Interrupt
from runs.lanes import Lanes
from runs.models import Run
from runs.sanitize import clean_text
from runs.states import Status
from runs.writes import Ending

logger = logging.getLogger(__name__)

STOP_PATIENCE = 2.0
"""Seconds that an agent has to stop; then it is left behind, fenced off from the log."""

FIRST_BACKOFF = 1.0
"""Seconds before the second try; each further one waits twice as long."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds, and the number of tries."""

    run_timeout: float
    idle_timeout: float
    max_attempts: int


Load = Callable[[Run], Awaitable[Turn]]
Release = Callable[[Run, float, Data | None], Awaitable[None]]
Abandon = Callable[[Run, Failure], Awaitable[None]]


class TurnDriver:
    """Drives held runs. What varies comes in as arguments."""

    def __init__(
        self,
        *,
        emitter: Emitter,
        agents: Mapping[str, LoadedAgent],
        load: Load,
        release: Release,
        abandon: Abandon,
        lanes: Lanes,
        limits: Limits,
    ) -> None:
        self._emitter = emitter
        self._agents = agents
        self._load = load
        self._release = release
        self._abandon = abandon
        self._lanes = lanes
        self._limits = limits

    async def drive(self, held: Held) -> None:
        """Call the agent, as often as it takes, and write how it ended. Raises nothing."""
        try:
            turn = await self._begin(held)
            while not await self._step(held, turn):
                turn = await self._restart(held)
        except Unwritable as refused:
            await self._abandon(held.run, Failure("unwritable_event", str(refused)))
        except WriteRefused as refused:
            fact(logger, "left to others", **held.names, because=refused)
        except Exception as error:
            logger.exception("run %s: could not be driven", held.run.pk)
            message = f"{type(error).__name__}: {error}"
            await self._abandon(held.run, Failure("internal_error", clean_text(message)))

    async def _begin(self, held: Held) -> Turn:
        turn = await self._load(held.run)
        held.consume(len(turn.inputs))
        return turn

    async def _restart(self, held: Held) -> Turn:
        """Void what was said, and say so; the turn to answer now has all the inputs."""
        await self._emitter.discard(held.log)
        turn = await self._begin(held)
        fact(
            logger,
            f"rerunning with merged input, continuing from seq {held.log.seq}",
            **held.names,
            inputs=held.consumed,
        )
        for event in held.log.stored.interrupted_tools("interrupted by a correction"):
            await self._emitter.emit(held.log, event)
        restarted = events.run_restarted(
            reason=RestartReason.MERGED, attempt=held.log.attempt, inputs=turn.inputs
        )
        await self._emitter.emit(held.log, restarted)
        metrics.RESTARTS.labels(RestartReason.MERGED).inc()
        return turn

    async def _step(self, held: Held, turn: Turn) -> bool:
        """One try. True when nothing is left to do for this worker, False to try once more."""
        outcome = await self._try(held, turn)
        try:
            match outcome:
                case Completed():
                    await self._complete(held, outcome)
                case Failure():
                    await self._fail(held, outcome)
                case Interrupt.RERUN:
                    return False
                case Interrupt.RELEASE:
                    await self._emitter.discard(held.log)
                    await self._release(held.run, 0.0, None)
                case Interrupt.LOST if held.log.refused is not None:
                    raise held.log.refused
        except InputGrew:
            return False
        return True

    # One try --------------------------------------------------------------------------------

    async def _try(self, held: Held, turn: Turn) -> Outcome:
        agent = self._agents.get(held.run.agent)
        if agent is None:
            return Failure("unknown_agent", f"No agent is called {held.run.agent!r} here.")
        if held.interrupted.done():
            return held.interrupted.result()
        held.started = time.monotonic()
        attempt = Attempt(self._emitter, held.log, self._lanes)
        task = asyncio.create_task(attempt.run(agent, turn), name=f"agent-{held.run.pk}")
        try:
            return await self._supervise(held, attempt, task)
        finally:
            attempt.close()
            if not task.done():
                task.cancel()
                await asyncio.wait({task}, timeout=STOP_PATIENCE)
            if not task.done():
                fact(logger, "agent does not stop, left behind", level=WARNING, **held.names)

    async def _supervise(
        self, held: Held, attempt: Attempt, task: asyncio.Task[Outcome]
    ) -> Outcome:
        """Wait for the agent, an interrupt, or the patience to run out."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._limits.run_timeout
        while True:
            silent_until = attempt.heard_at + self._limits.idle_timeout
            patience = max(0.0, min(deadline, silent_until) - loop.time())
            waited: set[asyncio.Future[Any]] = {task, held.interrupted}
            await asyncio.wait(waited, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
            if held.interrupted.done() and not (task.done() and held.leaving):
                return held.interrupted.result()
            if task.done():
                return task.result()
            if loop.time() >= deadline:
                limit = self._limits.run_timeout
                return Failure("run_timeout", f"The answer took longer than {limit:g} s.")
            if loop.time() >= attempt.heard_at + self._limits.idle_timeout:
                limit = self._limits.idle_timeout
                return Failure("idle_timeout", f"The agent was silent for {limit:g} s.")

    # How it ended ---------------------------------------------------------------------------

    async def _complete(self, held: Held, completed: Completed) -> None:
        ending = Ending("", finish_reason=completed.finish_reason, usage=completed.usage)
        event = events.run_completed(finish_reason=completed.finish_reason, usage=completed.usage)
        await self._emitter.finish(
            held.log, event, to=Status.DONE, ending=ending, consumed=held.consumed
        )
        fact(logger, "done", **held.names, finish_reason=completed.finish_reason)

    async def _fail(self, held: Held, failure: Failure) -> None:
        error = {"code": failure.code, "message": failure.message}
        last = held.run.tries >= self._limits.max_attempts
        if failure.transient and not last:
            backoff = FIRST_BACKOFF * 2 ** (held.run.tries - 1)
            fact(logger, "to be retried", **held.names, code=failure.code, seconds=backoff)
            await self._emitter.discard(held.log)
            await self._release(held.run, backoff, error)
            return
        await self._emitter.settle(held.log)
        for event in held.log.stored.interrupted_tools(failure.message):
            await self._emitter.emit(held.log, event)
        await self._emitter.finish(
            held.log,
            events.run_failed(code=failure.code, message=failure.message),
            to=Status.FAILED,
            ending=Ending("", finish_reason="error", error=error),
            consumed=None if last else held.consumed,
        )
        fact(logger, "failed", **held.names, code=failure.code, message=failure.message)
