"""A run in this process's own database, without HTTP."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, aclosing
from typing import cast
from uuid import UUID

from django.db import DatabaseError

from koda.terminal.session import NotServed, Unreachable
from runs.errors import Refused
from runs.querysets import Owner
from runs.services import cancel, create_conversation, submit
from runs.threads import DatabaseThreads
from streaming import wire
from streaming.protocols import PROTOCOLS
from streaming.runtime import gateway


class Here:
    """Services and gateway, called directly. The conversation belongs to nobody."""

    def __init__(self) -> None:
        self._threads = DatabaseThreads("koda-chat", threads=1, keep=False)
        self._run_id: UUID | None = None

    async def ask(self, text: str, agent: str | None) -> None:
        gateway()  # makes this event loop the channel layer's home before anything is sent
        try:
            self._run_id = await self._threads(_submit, text, agent)
        except Refused as error:
            raise NotServed(str(error)) from None

    def follow(self, last_id: int | None) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        start = wire.resume_from(last_id)
        stream = gateway().stream(self._asked, start=start, encode=PROTOCOLS["koda"])
        return aclosing(cast(AsyncGenerator[bytes, None], stream))

    async def cancel(self) -> None:
        try:
            await self._threads(cancel, self._asked)
        except Refused as error:
            raise NotServed(str(error)) from None
        except DatabaseError as error:
            raise Unreachable(str(error)) from None

    @property
    def _asked(self) -> UUID:
        assert self._run_id is not None, "ask first"
        return self._run_id


def _submit(text: str, agent: str | None) -> UUID:
    conversation = create_conversation(Owner(), agent=agent)
    return submit(conversation, text).run.pk
