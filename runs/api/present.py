"""Rows as the API shows them."""

from datetime import UTC, datetime
from typing import Any

from runs import conf
from runs.models import Conversation, Message, Run


def moment(at: datetime | None) -> str | None:
    """ISO 8601 in UTC, always with microseconds: such texts sort as the times do."""
    if at is None:
        return None
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def run_json(run: Run) -> dict[str, Any]:
    inputs = [{"text": one.text, "created_at": moment(one.created_at)} for one in run.inputs.all()]
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
        "inputs": inputs,
        "metadata": run.metadata,
    }


def turn_json(run: Run) -> dict[str, Any]:
    return {"run_id": str(run.pk), **run_json(run)}


def conversation_json(conversation: Conversation) -> dict[str, Any]:
    return {
        "id": str(conversation.pk),
        "title": conversation.title,
        "agent": conversation.agent or conf.get().default_agent,
        "created_at": moment(conversation.created_at),
    }


def sent_json(run: Run, *, merged: bool = False, position: int = 0) -> dict[str, Any]:
    return {
        "run": run_json(run),
        "merged": merged,
        "position": position,
        "stream_url": f"/api/runs/{run.pk}/stream",
    }


def event_json(row: Message) -> dict[str, Any]:
    return {
        "seq": row.seq,
        "type": row.type,
        "data": row.data,
        "created_at": moment(row.created_at),
    }
