"""Runs, their logs, and the agents that can be asked."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from django.http import HttpRequest
from ninja import Query, Router, Status

from runs import conf, schemas, services
from runs.agents.registry import load_agents
from runs.api.access import run_of
from runs.api.conversations import IdempotencyKey
from runs.api.limits import MessageRate
from runs.api.openapi import refuses
from runs.api.present import event_json, run_json, sent_json
from runs.models import Message

MAX_EVENTS = 1000

After = Annotated[int, Query(ge=-1, le=2**62, description="Number of the last event you have.")]
Limit = Annotated[int, Query(ge=1, le=MAX_EVENTS)]

router = Router(tags=["runs"])


@router.get("runs/{uuid:run_id}", response=schemas.Run)
def get_run(request: HttpRequest, run_id: UUID) -> dict[str, Any]:
    """A run."""
    return run_json(run_of(request, run_id))


@router.get("runs/{uuid:run_id}/events", response=schemas.EventPage)
def get_events(
    request: HttpRequest,
    run_id: UUID,
    after: After = -1,
    limit: Limit = MAX_EVENTS,
) -> dict[str, Any]:
    """The run's log."""
    run = run_of(request, run_id)
    rows = list(Message.objects.filter(run_id=run.pk, seq__gt=after).order_by("seq")[: limit + 1])
    following = rows[limit - 1].seq if len(rows) > limit else None
    return {
        "events": [event_json(row) for row in rows[:limit]],
        "next": following,
        "status": run.status,
    }


@router.post("runs/{uuid:run_id}/cancel", response=schemas.Run)
def cancel_run(request: HttpRequest, run_id: UUID) -> dict[str, Any]:
    """Stop a run. A finished one comes back as it is."""
    return run_json(services.cancel(run_of(request, run_id).pk))


@router.post(
    "runs/{uuid:run_id}/regenerate",
    response={201: schemas.Sent},
    throttle=[MessageRate()],
    openapi_extra=refuses(
        {
            409: "The run is not the last turn of its conversation, or is not over.",
            429: "Too many messages within a minute, or too many open runs.",
        }
    ),
)
def regenerate_run(
    request: HttpRequest,
    run_id: UUID,
    body: schemas.Regeneration | None = None,
    idempotency_key: IdempotencyKey = None,
) -> Status[dict[str, Any]]:
    """Answer the last turn anew, with the same or with edited inputs."""
    run = services.regenerate(
        run_of(request, run_id).pk,
        inputs=None if body is None else body.inputs,
        key=idempotency_key,
        max_open=conf.get().max_active_runs,
    )
    return Status(201, sent_json(run))


@router.get("agents", response=schemas.AgentList, tags=["agents"])
def list_agents(request: HttpRequest) -> dict[str, Any]:
    """The agents that can be asked."""
    agents = load_agents(conf.get().agents)
    return {
        "agents": [
            {"name": agent.name, "description": agent.description} for agent in agents.values()
        ],
        "default": conf.get().default_agent,
    }
