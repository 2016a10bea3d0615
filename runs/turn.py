"""One claimed run, from its first call of the agent to its terminal event."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, cast

from runs import events
from runs.agents import AgentError, TransientError, Turn
from runs.agents.registry import LoadedAgent
from runs.emitter import Emitter, RunLog
from runs.errors import InputGrew, Unwritable, WriteRefused
from runs.events import Data, RestartReason
from runs.models import Run
from runs.sanitize import clean_text
from runs.states import Status
from runs.translate import AgentProtocolError, Translator
from runs.writes import Ending

logger = logging.getLogger(__name__)

STOP_PATIENCE = 2.0
"""Seconds that an agent has to stop; then it is left behind, fenced off from the log."""

FIRST_BACKOFF = 1.0
"""Seconds before the second try; each further one waits twice as long."""


class Interrupt(Enum):
    """Why a try is stopped from outside."""

    RERUN = auto()
    LOST = auto()
    RELEASE = auto()


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a try failed."""

    code: str
    message: str
    transient: bool = False


@dataclass(frozen=True, slots=True)
class Completed:
    """The agent came to its end."""

    usage: Data | None
    finish_reason: str


Outcome = Completed | Failure | Interrupt


@dataclass(eq=False)
class Held:
    """A run that this worker owns."""

    run: Run
    log: RunLog
    started: float
    """Monotonic seconds."""
    consumed: int = 0
    """Inputs that the agent has been given."""
    known_inputs: int = 0
    """Inputs that the run has, as far as this worker has heard."""
    interrupted: asyncio.Future[Interrupt] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

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


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds, and the number of tries."""

    run_timeout: float
    idle_timeout: float
    max_attempts: int


Items = AsyncGenerator[object, None]
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
        limits: Limits,
    ) -> None:
        self._emitter = emitter
        self._agents = agents
        self._load = load
        self._release = release
        self._abandon = abandon
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
            logger.info("run %s: left to others: %s", held.run.pk, refused)
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
        logger.info(
            "run %s: rerunning with merged input, continuing from seq %d (attempt %d, worker %s)",
            held.run.pk,
            held.log.seq,
            held.log.attempt,
            held.log.worker,
        )
        for event in held.log.stored.interrupted_tools("interrupted by a correction"):
            await self._emitter.emit(held.log, event)
        restarted = events.run_restarted(
            reason=RestartReason.MERGED, attempt=held.log.attempt, inputs=turn.inputs
        )
        await self._emitter.emit(held.log, restarted)
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
        attempt = Attempt(self._emitter, held.log)
        task = asyncio.create_task(attempt.run(agent, turn), name=f"agent-{held.run.pk}")
        try:
            return await self._supervise(held, attempt, task)
        finally:
            attempt.close()
            if not task.done():
                task.cancel()
                await asyncio.wait({task}, timeout=STOP_PATIENCE)
            if not task.done():
                logger.warning("run %s: the agent does not stop; left behind", held.run.pk)

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
        logger.info("run %s: done (%s)", held.run.pk, completed.finish_reason)

    async def _fail(self, held: Held, failure: Failure) -> None:
        error = {"code": failure.code, "message": failure.message}
        last = held.run.tries >= self._limits.max_attempts
        if failure.transient and not last:
            backoff = FIRST_BACKOFF * 2 ** (held.run.tries - 1)
            logger.info("run %s: %s, another try in %g s", held.run.pk, failure.code, backoff)
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
        logger.info("run %s: failed (%s: %s)", held.run.pk, failure.code, failure.message)


class Attempt:
    """One call of the agent, feeding the log until it is closed."""

    def __init__(self, emitter: Emitter, log: RunLog) -> None:
        self._emitter = emitter
        self._log = log
        self._closed = False
        self._loop = asyncio.get_running_loop()
        self._heard_at = self._loop.time()
        self._storing = False

    @property
    def heard_at(self) -> float:
        """When the agent last said something; waiting for the database is not its silence."""
        return self._loop.time() if self._storing else self._heard_at

    def close(self) -> None:
        """From now on the agent speaks to nobody."""
        self._closed = True

    async def run(self, agent: LoadedAgent, turn: Turn) -> Outcome:
        translator = Translator()
        try:
            async with aclosing(cast(Items, agent.respond(turn))) as items:
                async for item in items:
                    await self._say(translator.translate(item))
            await self._say(translator.end())
        except WriteRefused:
            return Interrupt.LOST
        except asyncio.CancelledError:
            if self._closed:
                raise
            return Failure("agent_cancelled", "The agent cancelled itself.")
        except AgentProtocolError as error:
            return Failure("agent_protocol", str(error))
        except AgentError as error:
            transient = isinstance(error, TransientError)
            code = error.code or ("transient_error" if transient else "permanent_error")
            return Failure(clean_text(code), clean_text(error.message), transient)
        except Exception as error:
            logger.exception("run %s: the agent raised", self._log.run_id)
            return Failure("agent_error", clean_text(f"{type(error).__name__}: {error}"))
        return Completed(translator.usage, translator.finish_reason)

    async def _say(self, said: list[events.Event]) -> None:
        self._heard_at = self._loop.time()
        self._storing = True
        try:
            for event in said:
                if self._closed:
                    raise asyncio.CancelledError
                await self._emitter.emit(self._log, event)
        finally:
            self._storing = False
            self._heard_at = self._loop.time()
