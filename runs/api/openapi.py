"""The API's schema: what django-ninja finds out by itself, the refusals, and the stream."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema
from ninja.operation import Operation

from runs.problems import CONTENT_TYPE
from runs.schemas import Problem

Spec = dict[str, Any]

TAGS = [
    {"name": "conversations", "description": "Threads of turns, and what is said in them."},
    {"name": "runs", "description": "Answers in progress and done: their log, their stream."},
    {"name": "agents", "description": "Who can be asked."},
]
STREAM_TEXT = """\
The run's events as they happen, as server-sent events. `id:` is the event's number in the log.
A client that comes back with the last number that it received gets the next one. After the
terminal event the server closes the stream."""
STREAM_EXAMPLE = """\
retry: 2000

id: 0
event: run_started
data: {"attempt":1,"agent":"demo"}

id: 1
event: delta
data: {"text":"Hello! "}

"""

FRAME = {
    "type": "object",
    "description": "One event of the stream.",
    "properties": {
        "id": {"type": "string", "pattern": "^[0-9]+$", "description": "Its number in the log."},
        "event": {"type": "string"},
        "data": {"type": "string", "description": "One JSON object."},
    },
    "required": ["data"],
}


def refuses(why: Mapping[int, str]) -> Spec:
    """`openapi_extra` for an operation with refusals of its own: status → when."""
    return {"responses": {status: refusal(status, text) for status, text in why.items()}}


def refusal(status: int, when: str = "") -> Spec:
    """One refusal, as it stands among an operation's responses."""
    told: Spec = {
        "description": when or HTTPStatus(status).phrase,
        "content": {CONTENT_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        told["headers"] = {
            "Retry-After": {"schema": {"type": "integer"}, "description": "Seconds."}
        }
    return told


class Api(NinjaAPI):
    """Adds to the schema what every operation has in common."""

    def get_openapi_operation_id(self, operation: Operation) -> str:
        return operation.view_func.__name__

    def get_openapi_schema(self, **options: Any) -> OpenAPISchema:  # noqa: ANN401
        schema = super().get_openapi_schema(**options)
        schema["tags"] = TAGS
        parts = schema["components"]["schemas"]
        problem = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
        parts |= problem.pop("$defs")
        parts["Problem"] = problem
        paths: Spec = schema["paths"]
        [root] = [
            path.removesuffix("/{run_id}") for path in paths if path.endswith("/runs/{run_id}")
        ]
        paths[f"{root}/{{run_id}}/stream"] = {"get": _stream(paths[f"{root}/{{run_id}}"]["get"])}
        for methods in paths.values():
            for method, operation in methods.items():
                _add_refusals(method, operation)
        return schema


def _add_refusals(method: str, operation: Spec) -> None:
    places = {parameter["in"] for parameter in operation["parameters"]}
    common = {401: "Nobody is signed in, or the token is not valid."}
    if method != "get":
        common[403] = "No CSRF token came with the session, or the API token only reads."
    if "path" in places:
        common[404] = "There is no such object, or it is not yours."
    if "requestBody" in operation:
        common |= {400: "The body is not JSON.", 413: "The body is too large."}
        common[415] = "The body is not announced as `application/json`."
    if "requestBody" in operation or places - {"path"}:
        common[422] = "A value is wrong; `errors` names it."
    for status, when in common.items():
        operation["responses"].setdefault(status, refusal(status, when))


def _stream(get_run: Spec) -> Spec:
    """The stream's operation, which is no operation of django-ninja's."""
    seq = {"type": "string", "pattern": "^[0-9]{1,18}$"}
    protocols = {"type": "string", "enum": ["koda", "agent"], "default": "koda"}
    return {
        "operationId": "stream_run",
        "summary": "Stream Run",
        "description": STREAM_TEXT,
        "tags": ["runs"],
        "parameters": [
            *get_run["parameters"],
            {
                "in": "header",
                "name": "Last-Event-ID",
                "description": "The last number received. What is no number counts as none.",
                "schema": seq,
            },
            {"in": "query", "name": "last_event_id", "description": "The same.", "schema": seq},
            {"in": "query", "name": "protocol", "schema": protocols},
        ],
        "responses": {
            200: {
                "description": "The events.",
                "content": {"text/event-stream": {"schema": FRAME, "example": STREAM_EXAMPLE}},
            },
            204: {"description": "The run is over, and nothing is left."},
            400: refusal(400, "The number is beyond the end of the log."),
        },
        "security": get_run["security"],
    }
