"""Conversations, and the messages sent to them."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from django.http import HttpRequest
from ninja import Header, Query, Router, Status

from runs import conf, schemas, services, states
from runs.api.access import conversation_of, owner_of
from runs.api.limits import MessageRate
from runs.api.openapi import refuses
from runs.api.present import conversation_json, run_json, sent_json, turn_json
from runs.models import Conversation, Run

PAGE = 50
MAX_TURNS = 200

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        description="The same key and body give the first answer again; nothing is done twice.",
    ),
]
Cursor = Annotated[UUID | None, Query(description="`next` of the page before.")]
Words = Annotated[str, Query(max_length=200, description="Searches titles, messages and answers.")]
Before = Annotated[int | None, Query(ge=1, le=2**31 - 1, description="`earlier` of a later part.")]

router = Router(tags=["conversations"])


@router.post("conversations", response={201: schemas.Conversation})
def create_conversation(
    request: HttpRequest, body: schemas.NewConversation
) -> Status[dict[str, Any]]:
    """Create a conversation."""
    owner = owner_of(request)
    created = services.create_conversation(owner, agent=body.agent, title=body.title)
    return Status(201, conversation_json(created))


@router.get("conversations", response=schemas.ConversationPage)
def list_conversations(
    request: HttpRequest, cursor: Cursor = None, q: Words = ""
) -> dict[str, Any]:
    """Your conversations, newest first, 50 at a time."""
    found = Conversation.objects.owned_by(owner_of(request)).search(q).order_by("-id")
    if cursor is not None:
        found = found.filter(pk__lt=cursor)
    page = list(found[: PAGE + 1])
    following = str(page[PAGE - 1].pk) if len(page) > PAGE else None
    return {"conversations": [conversation_json(one) for one in page[:PAGE]], "next": following}


@router.get("conversations/{uuid:conversation_id}", response=schemas.ConversationDetail)
def get_conversation(
    request: HttpRequest, conversation_id: UUID, before: Before = None
) -> dict[str, Any]:
    """A conversation with its newest 200 turns, or with those before turn `before`."""
    conversation = conversation_of(request, conversation_id)
    shown = conversation.runs.filter(replaced_by=None).prefetch_related("inputs")
    if before is not None:
        shown = shown.filter(turn__lt=before)
    newest = list(shown.order_by("-turn")[: MAX_TURNS + 1])
    turns = newest[:MAX_TURNS][::-1]
    current = _open_run(conversation)
    return {
        **conversation_json(conversation),
        "turns": [turn_json(run) for run in turns],
        "earlier": turns[0].turn if len(newest) > MAX_TURNS else None,
        "open_run": None if current is None else run_json(current),
        "merge_window_ms": round(conf.get().merge_window * 1000),
    }


def _open_run(conversation: Conversation) -> Run | None:
    """The active run, else the oldest pending one."""
    runs = list(conversation.runs.open().order_by("turn").prefetch_related("inputs"))
    active = (run for run in runs if run.status in states.ACTIVE)
    return next(active, runs[0] if runs else None)


@router.patch("conversations/{uuid:conversation_id}", response=schemas.Conversation)
def rename_conversation(
    request: HttpRequest, conversation_id: UUID, body: schemas.ConversationPatch
) -> dict[str, Any]:
    """Rename a conversation."""
    conversation = conversation_of(request, conversation_id)
    return conversation_json(services.rename(conversation.pk, body.title))


@router.delete("conversations/{uuid:conversation_id}", response={204: None})
def delete_conversation(request: HttpRequest, conversation_id: UUID) -> Status[None]:
    """Delete a conversation with all its runs, whatever they are doing."""
    services.delete(conversation_of(request, conversation_id).pk)
    return Status(204, None)


@router.post(
    "conversations/{uuid:conversation_id}/messages",
    response={200: schemas.Sent, 201: schemas.Sent},
    throttle=[MessageRate()],
    openapi_extra=refuses(
        {
            409: "`on_busy=reject`, and a run is open.",
            429: "Too many messages within a minute, or too many open runs.",
        }
    ),
)
def send_message(
    request: HttpRequest,
    conversation_id: UUID,
    body: schemas.NewMessage,
    idempotency_key: IdempotencyKey = None,
) -> Status[dict[str, Any]]:
    """Ask. 201: a new run answers; 200: the message joined the run in progress."""
    submitted = services.submit(
        conversation_of(request, conversation_id),
        body.text,
        on_busy=body.on_busy,
        key=idempotency_key,
        agent=body.agent,
        metadata=body.metadata,
        max_open=conf.get().max_active_runs,
    )
    answer = sent_json(submitted.run, merged=submitted.merged, position=submitted.position)
    return Status(200 if submitted.merged else 201, answer)
