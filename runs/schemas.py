"""What goes in and out of the API."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from pydantic import BaseModel, Field

from runs import conf
from runs.models import Conversation, Run, RunInput
from runs.services import OnBusy


class NewConversation(BaseModel):
    agent: str | None = Field(None, max_length=100)
    title: str = Field("", max_length=200)


class ConversationPatch(BaseModel):
    title: str = Field(max_length=200)


class NewMessage(BaseModel):
    text: str
    on_busy: OnBusy = OnBusy.MERGE
    agent: str | None = Field(None, max_length=100)
    metadata: dict[str, Any] = Field(default_factory=dict)


class Regeneration(BaseModel):
    inputs: list[str] | None = Field(None, max_length=100)


def moment(at: datetime | None) -> str | None:
    """ISO 8601 in UTC, always with microseconds: such texts sort as the times do."""
    if at is None:
        return None
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def input_json(given: RunInput) -> dict[str, Any]:
    return {"text": given.text, "created_at": moment(given.created_at)}


def run_json(run: Run) -> dict[str, Any]:
    return {
        "id": str(run.pk),
        "conversation_id": str(run.conversation_id),
        "turn": run.turn,
        "agent": run.agent,
        "status": run.status,
        "attempt": run.attempt,
        "created_at": moment(run.created_at),
        "started_at": moment(run.started_at),
        "first_token_at": moment(run.first_token_at),
        "finished_at": moment(run.finished_at),
        "output": run.output,
        "error": run.error,
        "usage": run.usage,
        "finish_reason": run.finish_reason or None,
        "last_seq": run.next_seq - 1 if run.next_seq else None,
        "inputs": [input_json(given) for given in run.inputs.all()],
        "metadata": run.metadata,
    }


def turn_json(run: Run) -> dict[str, Any]:
    """A run as a turn of its conversation."""
    return {"run_id": str(run.pk), **run_json(run)}


def conversation_json(conversation: Conversation) -> dict[str, Any]:
    return {
        "id": str(conversation.pk),
        "title": conversation.title,
        "agent": conversation.agent or conf.get().default_agent,
        "created_at": moment(conversation.created_at),
    }


def answer_json(run: Run, *, merged: bool, position: int) -> dict[str, Any]:
    """Where a message went."""
    return {
        "run": run_json(run),
        "merged": merged,
        "position": position,
        "stream_url": stream_url(run.pk),
    }


def stream_url(run_id: UUID) -> str:
    return f"/api/runs/{run_id}/stream"
