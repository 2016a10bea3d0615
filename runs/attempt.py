"""One call of an agent, from the first item it yields to the way it ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import dataclass
from typing import cast

from runs.agents import AgentError, TransientError, Turn
from runs.agents.registry import LoadedAgent
from runs.emitter import Emitter
from runs.errors import WriteRefused
from runs.events import Data, Said
from runs.held import Interrupt
from runs.lanes import Crossing, Lanes
from runs.runlog import RunLog
from runs.sanitize import clean_text
from runs.translate import AgentProtocolError, Translator

logger = logging.getLogger(__name__)

Items = AsyncGenerator[object, None]


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


class Attempt:
    """One call of the agent, feeding the log until it is closed."""

    def __init__(self, emitter: Emitter, log: RunLog, lanes: Lanes) -> None:
        self._emitter = emitter
        self._lanes = lanes
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
            async with aclosing(self._call(agent, turn)) as items:
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
            return Failure(clean_text(str(code)), clean_text(str(error.message)), transient)
        except (Exception, SystemExit, KeyboardInterrupt) as error:
            logger.exception("run %s: the agent raised", self._log.run_id)
            return Failure("agent_error", clean_text(f"{type(error).__name__}: {error}"))
        return Completed(translator.usage, translator.finish_reason)

    def _call(self, agent: LoadedAgent, turn: Turn) -> Items | Crossing:
        """On the worker's own loop only if the agent promises not to block it."""
        if agent.cooperative:
            return cast(Items, agent.respond(turn))
        return self._lanes.open(agent.respond, turn)

    async def _say(self, said: Iterable[Said]) -> None:
        for one in said:
            if self._closed:
                raise asyncio.CancelledError
            if not self._emitter.offer(self._log, one):
                await self._say_later(one)
        self._heard_at = self._loop.time()

    async def _say_later(self, said: Said) -> None:
        self._storing = True
        try:
            await self._emitter.emit(self._log, said)
        finally:
            self._storing = False
            self._heard_at = self._loop.time()
