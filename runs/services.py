"""What views, admin and your own Django code may do to runs."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any
from uuid import UUID

from django.db import transaction

from runs import conf, given, marks, ports
from runs.errors import (
    ConversationBusy,
    InvalidText,
    KeyReused,
    NotFound,
    NotRegenerable,
    TooManyRuns,
)
from runs.facts import RunNames, fact
from runs.models import Conversation, Message, Run, RunInput
from runs.prepared import Prepared
from runs.querysets import Owner
from runs.sanitize import clean_text
from runs.transactions import write_transaction
from runs.writes import Ended

logger = logging.getLogger(__name__)


class OnBusy(StrEnum):
    """What a message does while a run of its conversation is open."""

    MERGE = "merge"
    QUEUE = "queue"
    INTERRUPT = "interrupt"
    REJECT = "reject"


@dataclass(frozen=True, slots=True)
class Submitted:
    """Where a message went. `merged` is how, `position` its place among the run's inputs."""

    run: Run
    merged: bool
    position: int


def create_conversation(
    owner: Owner, *, agent: str | None = None, title: str = "", external_id: str | None = None
) -> Conversation:
    """A new, empty conversation. Raises UnknownAgent."""
    if agent:
        given.agent(agent)
    return Conversation.objects.create(
        owner_id=None if owner.user is None else owner.user.pk,
        visitor_key=owner.visitor_key,
        agent=agent or "",
        title=clean_text(title),
        external_id=external_id,
    )


def rename(conversation_id: UUID, title: str) -> Conversation:
    """Give a conversation another title. Raises NotFound."""
    Conversation.objects.filter(pk=conversation_id).update(title=clean_text(title))
    try:
        return Conversation.objects.get(pk=conversation_id)
    except Conversation.DoesNotExist:
        raise NotFound("no such conversation") from None


def submit(
    conversation: Conversation,
    text: str,
    *,
    on_busy: OnBusy | str = OnBusy.MERGE,
    key: str | None = None,
    agent: str | None = None,
    metadata: dict[str, Any] | None = None,
    max_open: int | None = None,
) -> Submitted:
    """Answer a message: in the run in progress if it may join it, else in a new run.

    `key` makes the call idempotent: the same key and message give the first answer again.
    `max_open` bounds the owner's open runs. Raises InvalidText, InvalidMetadata, UnknownAgent,
    ConversationBusy (on_busy=reject), KeyReused, TooManyRuns and NotFound.
    """
    text = given.text(text)
    metadata = given.metadata(metadata or {})
    on_busy = OnBusy(on_busy)
    if agent:
        given.agent(agent)
    body_hash = given.fingerprint(text=text, on_busy=on_busy, agent=agent, metadata=metadata)
    with write_transaction():
        locked = _lock(conversation.pk)
        if key is not None and (before := _answered(locked, key, body_hash)):
            return before
        newest = _NEWEST.first(locked.pk)
        if on_busy is OnBusy.REJECT and locked.runs.open().exists():
            raise ConversationBusy("a run of this conversation is still open")
        if on_busy is OnBusy.INTERRUPT:
            for run in locked.runs.open().order_by("-turn"):
                _announce(Run.objects.cancel(run.pk, reason="superseded"))
        new_input = RunInput(conversation=locked, text=text, key=key, body_hash=body_hash)
        if on_busy is OnBusy.MERGE and newest and (joined := _join(newest, new_input)):
            return joined
        _check_room(locked, max_open)
        return _start(locked, new_input, newest=newest, agent=agent, metadata=metadata)


_NEWEST = Prepared(lambda pk: Run.objects.filter(conversation=pk).order_by("-turn")[:1], UUID)


def _answered(conversation: Conversation, key: str, body_hash: str) -> Submitted | None:
    """The answer that this idempotency key got before."""
    found = RunInput.objects.filter(conversation=conversation, key=key).select_related("run")
    before = found.first()
    if before is None:
        return None
    if before.body_hash != body_hash:
        raise KeyReused("this Idempotency-Key came with another message before")
    return Submitted(before.run, merged=before.position > 0, position=before.position)


def _join(newest: Run, new_input: RunInput) -> Submitted | None:
    position = Run.objects.add_input(newest.pk, window=conf.get().merge_window_delta)
    if position is None:
        return None
    new_input.run, new_input.position = newest, position
    new_input.save(force_insert=True)
    transaction.on_commit(partial(marks.set_mark, newest.pk, position + 1))
    newest.refresh_from_db()
    fact(logger, "input merged", **_names(newest), position=position)
    return Submitted(newest, merged=True, position=position)


def _start(
    conversation: Conversation,
    new_input: RunInput,
    *,
    newest: Run | None,
    agent: str | None,
    metadata: dict[str, Any],
) -> Submitted:
    run = Run.objects.create(
        conversation=conversation,
        turn=newest.turn + 1 if newest else 1,
        agent=agent or conversation.agent or conf.get().default_agent,
        metadata=metadata,
        input_count=1,
    )
    new_input.run, new_input.position = run, 0
    new_input.save(force_insert=True)
    if not conversation.title:
        title = " ".join(new_input.text.split())[:80]
        Conversation.objects.filter(pk=conversation.pk).update(title=title)
    transaction.on_commit(ports.port().nudge_soon)
    fact(logger, "created", **_names(run), turn=run.turn)
    return Submitted(run, merged=False, position=0)


def regenerate(
    run_id: UUID,
    *,
    inputs: Sequence[str] | None = None,
    key: str | None = None,
    max_open: int | None = None,
) -> Run:
    """Answer the last turn anew, with the same or with edited inputs.

    The new run takes the place of the finished one, which becomes history. `key` and `max_open`
    as in `submit`. Raises NotFound, NotRegenerable, InvalidText, KeyReused and TooManyRuns.
    """
    edited = None if inputs is None else [given.text(text) for text in inputs]
    if edited == []:
        raise InvalidText("there is no input to answer")
    body_hash = given.fingerprint(regenerate=str(run_id), inputs=edited)
    with write_transaction():
        found = Run.objects.filter(pk=run_id).values_list("conversation_id", flat=True).first()
        if found is None:
            raise NotFound("no such run")
        conversation = _lock(found)
        if key is not None and (before := _answered(conversation, key, body_hash)):
            return before.run
        last = conversation.runs.order_by("-turn").first()
        if last is None or last.pk != run_id or not last.is_terminal:
            raise NotRegenerable("only the last turn can be answered anew, once it is over")
        _check_room(conversation, max_open)
        texts = edited or list(last.inputs.values_list("text", flat=True))
        run = _replace(last, texts, key=key, body_hash=body_hash)
    fact(logger, "created", **_names(run), turn=run.turn, replaces=run_id)
    return run


def _replace(last: Run, texts: list[str], *, key: str | None, body_hash: str) -> Run:
    run = Run.objects.create(
        conversation_id=last.conversation_id,
        turn=last.turn + 1,
        agent=last.agent,
        metadata=last.metadata,
        replaces=last,
        input_count=len(texts),
    )
    new_inputs = [
        RunInput(run=run, conversation_id=run.conversation_id, position=position, text=text)
        for position, text in enumerate(texts)
    ]
    new_inputs[0].key, new_inputs[0].body_hash = key, body_hash
    RunInput.objects.bulk_create(new_inputs)
    transaction.on_commit(ports.port().nudge_soon)
    return run


def _lock(conversation_id: UUID) -> Conversation:
    """The row, locked until the transaction ends. Raises NotFound.

    NO KEY: rows that refer to the conversation can still be inserted meanwhile.
    """
    locked = _LOCKED.first(conversation_id)
    if locked is None:
        raise NotFound("no such conversation")
    return locked


_LOCKED = Prepared(
    lambda pk: Conversation.objects.filter(pk=pk).select_for_update(no_key=True), UUID
)


def _check_room(conversation: Conversation, max_open: int | None) -> None:
    """Raises TooManyRuns. Other conversations are not locked: a burst may pass by a few."""
    if max_open is None:
        return
    if Run.objects.open().of_owner(conversation)[max_open - 1 :].exists():
        raise TooManyRuns(f"{max_open} runs of yours are open; wait until one has ended")


def cancel(run_id: UUID, *, reason: str = "user") -> Run:
    """Stop a run. A finished one comes back as it is. Raises NotFound."""
    try:
        with write_transaction():
            ended = Run.objects.cancel(run_id, reason=reason)
            _announce(ended)
    except Run.DoesNotExist:
        raise NotFound("no such run") from None
    return ended.run


def delete(conversation_id: UUID) -> None:
    """Delete a conversation with all its runs, whatever they are doing. Raises NotFound."""
    with write_transaction():
        conversation = _lock(conversation_id)
        runs = list(conversation.runs.select_for_update().values_list("pk", flat=True))
        Message.objects.filter(run_id__in=runs).delete()
        conversation.delete()
        for run_id in runs:
            transaction.on_commit(partial(ports.port().deleted_soon, run_id))


def _announce(ended: Ended) -> None:
    """Tell watchers and workers, once it is true. A freed conversation may have work waiting."""
    if not ended.published:
        return
    fact(logger, ended.run.status, **_names(ended.run), reason=ended.run.finish_reason)
    port = ports.port()
    transaction.on_commit(partial(port.publish_soon, {ended.run.pk: ended.published}))
    transaction.on_commit(port.nudge_soon)


def _names(run: Run) -> RunNames:
    return {
        "run": run.pk,
        "conversation": run.conversation_id,
        "attempt": run.attempt,
        "worker": run.claimed_by,
    }
