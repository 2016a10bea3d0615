"""Calls made up from the API's own schema, right and wrong ones: all answers are described there.

FUZZ_EXAMPLES=500 asks more.
"""

from __future__ import annotations

import os
from types import SimpleNamespace

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS, load_all_checks

from runs.api import api

pytest_plugins = ["tests.live"]

load_all_checks()
WANTED = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
]
CHECKED = CHECKS.get_by_names(WANTED)
BOUNDED = settings(
    max_examples=int(os.environ.get("FUZZ_EXAMPLES", "25")),
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="session")
def door(live):
    """The shared system, with a token for it."""
    headers = {"Authorization": f"Bearer {live.token('fuzz')}"}
    with httpx.Client(base_url=live.gateway.url, headers=headers, timeout=60) as http:
        yield SimpleNamespace(http=http, headers=headers)


@pytest.fixture(scope="session")
def api_schema(live, door):
    return schemathesis.openapi.from_url(f"{live.gateway.url}/api/openapi.json")


PATHS = api.get_openapi_schema(path_prefix="api/")["paths"]
OPERATIONS = [(path, method) for path, methods in PATHS.items() for method in methods]
each_operation = pytest.mark.parametrize(("path", "method"), OPERATIONS)
each_mode = pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)


def ask(case, headers):
    case.call_and_validate(headers=headers, checks=CHECKED, timeout=60)


@each_operation
@each_mode
def test_what_the_api_answers_is_in_its_schema(door, api_schema, path, method, mode):
    made_up = api_schema[path][method.upper()].as_strategy(generation_mode=mode)

    @BOUNDED
    @given(made_up)
    def fuzz(case):
        ask(case, door.headers)

    fuzz()


@each_operation
@each_mode
def test_what_it_answers_about_things_that_are_there_is_too(door, api_schema, path, method, mode):
    made_up = api_schema[path][method.upper()].as_strategy(generation_mode=mode)

    @BOUNDED
    @given(made_up)
    def fuzz(case):
        conversation = door.http.post("/api/conversations", json={"agent": "words"}).json()["id"]
        url = f"/api/conversations/{conversation}/messages"
        run = door.http.post(url, json={"text": "go"}).json()["run"]
        known = {"conversation_id": conversation, "run_id": run["id"]}
        case.path_parameters = {name: known[name] for name in case.path_parameters or {}}
        ask(case, door.headers)

    fuzz()


def test_without_a_token_or_with_a_wrong_one_it_answers_as_described(live, api_schema):
    for result in api_schema.get_all_operations():
        operation = result.ok()
        case = operation.Case(
            path_parameters={
                "conversation_id": "00000000-0000-7000-8000-000000000000",
                "run_id": "00000000-0000-7000-8000-000000000000",
            }
        )
        case.call_and_validate(headers={"Authorization": "Bearer wrong"}, checks=CHECKED)
