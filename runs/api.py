"""The HTTP API. Each operation asks a service or reads; none writes by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any
from uuid import UUID

from django.core.exceptions import RequestDataTooBig
from django.http import Http404, HttpRequest, HttpResponse
from ninja import Header, NinjaAPI, Query, Status
from ninja.errors import AuthenticationError, HttpError, ValidationError
from ninja.security import APIKeyCookie, HttpBearer

from runs import auth, conf, errors, schemas, services, states
from runs.agents.registry import load_agents
from runs.models import Conversation, Message, Run
from runs.problems import not_found, not_signed_in, problem
from runs.querysets import Owner

PAGE = 50
MAX_EVENTS = 1000

IdempotencyKey = Annotated[
    str | None, Header(alias="Idempotency-Key", min_length=1, max_length=255)
]
After = Annotated[int, Query(ge=-1, le=2**62)]
Limit = Annotated[int, Query(ge=1, le=MAX_EVENTS)]


class BearerToken(HttpBearer):
    """An API token. One that is sent and wrong is refused, whatever cookies come with it."""

    def __call__(self, request: HttpRequest) -> Owner | None:
        try:
            return auth.token_owner(request)
        except auth.NotSignedIn:
            raise AuthenticationError from None

    def authenticate(self, request: HttpRequest, token: str) -> Owner | None:
        return self(request)


class SessionOrVisitor(APIKeyCookie):
    """The session cookie of a signed-in user or of a visitor; both check CSRF."""

    param_name = "sessionid"

    def authenticate(self, request: HttpRequest, key: str | None) -> Owner | None:
        try:
            return auth.admit_visitor(request)
        except auth.NotSignedIn:
            return None


api = NinjaAPI(
    title="Koda",
    version="1",
    auth=[BearerToken(), SessionOrVisitor()],
    docs_url="docs",
    openapi_url="openapi.json",
    urls_namespace="koda_api",
)

STATUS_OF = {
    auth.ReadOnlyToken: 403,
    errors.NotFound: 404,
    errors.ConversationBusy: 409,
    errors.NotRegenerable: 409,
    errors.KeyReused: 422,
    errors.InvalidText: 422,
    errors.InvalidMetadata: 422,
    errors.UnknownAgent: 422,
}


@api.exception_handler(errors.Refused)
def _refused(request: HttpRequest, error: errors.Refused) -> HttpResponse:
    more = {"errors": [{"field": error.field, "message": str(error)}]} if error.field else {}
    return problem(STATUS_OF.get(type(error), 409), code=error.code, detail=str(error), **more)


@api.exception_handler(ValidationError)
def _invalid(request: HttpRequest, error: ValidationError) -> HttpResponse:
    faults = [{"field": _field(fault["loc"]), "message": fault["msg"]} for fault in error.errors]
    first = faults[0]
    detail = f"{first['field']}: {first['message']}" if first["field"] else first["message"]
    return problem(422, code="invalid", detail=detail, errors=faults)


def _field(location: Sequence[str | int]) -> str:
    """The dotted name of the value at fault: bodies have the argument's name in front."""
    skipped = 2 if location[0] == "body" else 1
    return ".".join(str(part) for part in location[skipped:])


@api.exception_handler(RequestDataTooBig)
def _too_large(request: HttpRequest, error: RequestDataTooBig) -> HttpResponse:
    return problem(413, code="too_large", detail="The body is too large.")


@api.exception_handler(AuthenticationError)
def _unauthenticated(request: HttpRequest, error: AuthenticationError) -> HttpResponse:
    return not_signed_in()


@api.exception_handler(HttpError)
def _http_error(request: HttpRequest, error: HttpError) -> HttpResponse:
    codes = {400: "malformed", 403: "csrf_failed"}
    return problem(error.status_code, code=codes.get(error.status_code, "error"), detail=str(error))


@api.exception_handler(Http404)
def _missing(request: HttpRequest, error: Http404) -> HttpResponse:
    return not_found()


def _owner(request: HttpRequest) -> Owner:
    owner: Owner = request.auth  # type: ignore[attr-defined]
    return owner


def _conversation(request: HttpRequest, conversation_id: UUID) -> Conversation:
    found = Conversation.objects.owned_by(_owner(request)).filter(pk=conversation_id).first()
    if found is None:
        raise errors.NotFound("There is no such object.")
    return found


def _run(request: HttpRequest, run_id: UUID) -> Run:
    found: Run | None = Run.objects.owned_by(_owner(request)).filter(pk=run_id).first()
    if found is None:
        raise errors.NotFound("There is no such object.")
    return found


@api.post("conversations", response={201: dict[str, Any]})
def create_conversation(
    request: HttpRequest, body: schemas.NewConversation
) -> Status[dict[str, Any]]:
    """Create a conversation."""
    owner = _owner(request)
    created = services.create_conversation(owner, agent=body.agent, title=body.title)
    return Status(201, schemas.conversation_json(created))


@api.get("conversations")
def list_conversations(
    request: HttpRequest, cursor: UUID | None = None, q: str = ""
) -> dict[str, Any]:
    """Your conversations, newest first; `q` searches titles and texts."""
    found = Conversation.objects.owned_by(_owner(request)).search(q).order_by("-id")
    if cursor is not None:
        found = found.filter(pk__lt=cursor)
    page = list(found[: PAGE + 1])
    following = str(page[PAGE - 1].pk) if len(page) > PAGE else None
    return {
        "conversations": [schemas.conversation_json(one) for one in page[:PAGE]],
        "next": following,
    }


@api.get("conversations/{uuid:conversation_id}")
def get_conversation(request: HttpRequest, conversation_id: UUID) -> dict[str, Any]:
    """A conversation with its turns in order."""
    conversation = _conversation(request, conversation_id)
    shown = conversation.runs.filter(replaced_by=None)
    runs = list(shown.order_by("turn").prefetch_related("inputs"))
    active = [run for run in runs if run.status in states.ACTIVE]
    waiting = [run for run in runs if run.status == states.Status.PENDING]
    current = next(iter(active + waiting), None)
    return {
        **schemas.conversation_json(conversation),
        "turns": [schemas.turn_json(run) for run in runs],
        "open_run": None if current is None else schemas.run_json(current),
        "merge_window_ms": round(conf.get().merge_window * 1000),
    }


@api.patch("conversations/{uuid:conversation_id}")
def rename_conversation(
    request: HttpRequest, conversation_id: UUID, body: schemas.ConversationPatch
) -> dict[str, Any]:
    """Rename a conversation."""
    conversation = _conversation(request, conversation_id)
    return schemas.conversation_json(services.rename(conversation.pk, body.title))


@api.delete("conversations/{uuid:conversation_id}", response={204: None})
def delete_conversation(request: HttpRequest, conversation_id: UUID) -> Status[None]:
    """Delete a conversation; what runs in it is cancelled."""
    services.delete(_conversation(request, conversation_id).pk)
    return Status(204, None)


@api.post(
    "conversations/{uuid:conversation_id}/messages",
    response={200: dict[str, Any], 201: dict[str, Any]},
)
def send_message(
    request: HttpRequest,
    conversation_id: UUID,
    body: schemas.NewMessage,
    idempotency_key: IdempotencyKey = None,
) -> Status[dict[str, Any]]:
    """Ask. 201: a new run answers; 200: the message joined the run in progress."""
    submitted = services.submit(
        _conversation(request, conversation_id),
        body.text,
        on_busy=body.on_busy,
        key=idempotency_key,
        agent=body.agent,
        metadata=body.metadata,
    )
    answer = schemas.answer_json(
        submitted.run, merged=submitted.merged, position=submitted.position
    )
    return Status(200 if submitted.merged else 201, answer)


@api.get("runs/{uuid:run_id}")
def get_run(request: HttpRequest, run_id: UUID) -> dict[str, Any]:
    """A run."""
    return schemas.run_json(_run(request, run_id))


@api.get("runs/{uuid:run_id}/events")
def get_events(
    request: HttpRequest,
    run_id: UUID,
    after: After = -1,
    limit: Limit = MAX_EVENTS,
) -> dict[str, Any]:
    """The run's log. `next` is the `after` of the next page, null when there is none yet."""
    run = _run(request, run_id)
    rows = list(Message.objects.filter(run_id=run.pk, seq__gt=after).order_by("seq")[: limit + 1])
    following = rows[limit - 1].seq if len(rows) > limit else None
    return {
        "events": [
            {
                "seq": row.seq,
                "type": row.type,
                "data": row.data,
                "created_at": schemas.moment(row.created_at),
            }
            for row in rows[:limit]
        ],
        "next": following,
        "status": run.status,
    }


@api.post("runs/{uuid:run_id}/cancel")
def cancel_run(request: HttpRequest, run_id: UUID) -> dict[str, Any]:
    """Stop a run. A finished one comes back as it is."""
    return schemas.run_json(services.cancel(_run(request, run_id).pk))


@api.post("runs/{uuid:run_id}/regenerate", response={201: dict[str, Any]})
def regenerate_run(
    request: HttpRequest, run_id: UUID, body: schemas.Regeneration | None = None
) -> Status[dict[str, Any]]:
    """Answer the last turn anew, with the same or with edited inputs."""
    inputs = None if body is None else body.inputs
    run = services.regenerate(_run(request, run_id).pk, inputs=inputs)
    return Status(201, schemas.answer_json(run, merged=False, position=0))


@api.get("agents")
def list_agents(request: HttpRequest) -> dict[str, Any]:
    """The agents that can be asked."""
    agents = load_agents(conf.get().agents)
    return {
        "agents": [
            {"name": agent.name, "description": agent.description} for agent in agents.values()
        ],
        "default": conf.get().default_agent,
    }
