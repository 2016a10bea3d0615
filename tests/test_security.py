"""What the browser is told, what `check --deploy` says, and what no log may say."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from django.test import AsyncClient, Client
from django.utils.module_loading import import_string

from koda import csp, settings
from tests.asking import ask_failing
from tests.live import Launcher
from tests.live_databases import ROOT
from tests.program import Program
from tests.servers import HOST, free_port
from tests.stub_model import StubModel
from tests.waiting import until

PRODUCTION = {
    "DJANGO_SECRET_KEY": "rEk1-" + "0123456789abcdef" * 4,
    "DJANGO_ALLOWED_HOSTS": "chat.example.com",
    "DJANGO_TLS": "1",
    "DATABASE_URL": "postgres://koda:hunter2-db@127.0.0.1:9/koda",
    "REDIS_URL": "redis://:hunter2-redis@127.0.0.1:9/0",
    "OPENAI_API_KEY": "sk-hunter2",
    "KODA_OPENAI_MODEL": "m",
}


def manage(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/", "/admin/login/", "/api/docs", "/healthz", "/no-such-page"])
def test_every_page_forbids_what_stands_in_it_to_run(client: Client, path: str):
    policy = client.get(path).headers[csp.HEADER]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy


@pytest.mark.django_db(transaction=True)
async def test_the_policy_is_there_under_asgi_too(async_client: AsyncClient):
    assert (await async_client.get("/healthz")).headers[csp.HEADER] == csp.POLICY


@pytest.mark.django_db
def test_a_response_may_have_a_policy_of_its_own(client: Client):
    answer = csp.content_security_policy(lambda request: request)
    assert answer(_Own()).headers[csp.HEADER] == "own"


class _Own:
    status_code = 200

    def __init__(self) -> None:
        self.headers = {csp.HEADER: "own"}


def test_no_middleware_is_synchronous_only():
    for path in settings.MIDDLEWARE:
        assert import_string(path).async_capable, path


def test_the_documented_production_environment_passes_djangos_deploy_checks():
    result = manage("check", "--deploy", "--fail-level", "WARNING", **PRODUCTION)
    assert result.returncode == 0, result.stderr


def test_without_debug_the_deploy_checks_ask_for_tls_alone():
    result = manage("check", "--deploy", **{**PRODUCTION, "DJANGO_TLS": "0"})
    warned = {word.strip("?:()") for word in result.stderr.split() if "security.W" in word}
    assert warned == {"security.W004", "security.W008", "security.W012", "security.W016"}


async def test_behind_tls_cookies_are_secure_and_plain_http_is_sent_on(launch: Launcher):
    system = launch(DJANGO_TLS="1")
    http = system.visitor().http
    async with http:
        sent_on = await http.get("/")
        assert sent_on.status_code == 301
        assert sent_on.headers["Location"].startswith("https://")
        assert (await http.get("/healthz")).status_code == 200

        secure = {
            "X-Forwarded-Proto": "https",
            "Referer": f"{http.base_url}".replace("http", "https"),
        }
        page = await http.get("/", headers=secure)
        assert page.status_code == 200
        assert "max-age=2592000" in page.headers["Strict-Transport-Security"]
        cookies = page.headers.get_list("Set-Cookie")
        assert len(cookies) == 2
        assert all("; Secure" in cookie for cookie in cookies)

        crumbs = [cookie.partition(";")[0] for cookie in cookies]
        token = next(crumb for crumb in crumbs if crumb.startswith("csrftoken=")).partition("=")[2]
        secure |= {"Cookie": "; ".join(crumbs), "X-CSRFToken": token}
        assert (await http.post("/api/conversations", json={}, headers=secure)).status_code == 201
        del secure["Referer"]
        assert (await http.post("/api/conversations", json={}, headers=secure)).status_code == 403


# Secrets ------------------------------------------------------------------------------------


def test_no_secret_is_in_what_a_failing_command_says():
    result = manage("migrate", **PRODUCTION)
    assert result.returncode != 0
    assert "127.0.0.1" in result.stderr
    assert "hunter2" not in result.stdout + result.stderr


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DATABASE_URL", "postgres://koda:hunter2/koda@db/koda"),
        ("DATABASE_URL", "postgres://koda:hun#ter2@db/koda"),
        ("DATABASE_URL", "mysql://koda:hunter2@db/koda"),
        ("REDIS_URL", "http://:hunter2@redis"),
        ("REDIS_URL", "hunter2"),
    ],
)
def test_a_url_that_cannot_be_read_is_not_quoted(name: str, value: str):
    result = manage("check", **{name: value})
    assert result.returncode == 1
    assert result.stderr.startswith(f"koda: {name} ")
    assert "ter2" not in result.stdout + result.stderr
    assert "Traceback" not in result.stderr


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Program]]:
    """Starts a command of which nobody expects that it gets to work."""
    started: list[Program] = []

    def launch(command: str, *arguments: str, port: int = 0) -> Program:
        environment = {**os.environ, **PRODUCTION, "DJANGO_TLS": "0"}
        environment["DJANGO_ALLOWED_HOSTS"] = HOST
        log = tmp_path / command
        start = ("manage.py", command, *arguments)
        program = Program(command, *start, environment=environment, log=log, port=port)
        program.launch()
        started.append(program)
        return program

    yield launch
    for program in started:
        program.kill()


async def test_no_secret_is_in_the_logs_of_processes_whose_services_are_away(start):
    worker, port = start("worker"), free_port()
    gateway = start("gateway", "--host", HOST, "--port", str(port), port=port)
    await until(gateway.reachable, "the gateway", timeout=60)
    async with httpx.AsyncClient(base_url=gateway.url, timeout=60) as http:
        answers = await asyncio.gather(
            http.get("/readyz"),
            http.get("/admin/", headers={"Cookie": "sessionid=hunter2-session"}),
            http.get("/api/agents", headers={"Authorization": "Bearer hunter2-token"}),
        )
    assert [answer.status_code for answer in answers[:2]] == [503, 500]
    assert answers[2].status_code >= 400
    await until(lambda: "database away" in worker.log(), "the worker's complaint", timeout=30)
    told = "".join(answer.text for answer in answers)
    for secret in ("hunter2", PRODUCTION["DJANGO_SECRET_KEY"]):
        assert secret not in gateway.log() + worker.log() + told
    assert "Traceback" in gateway.log(), "errors are logged, and this one should have been"


async def test_a_key_that_the_provider_quotes_is_not_passed_on(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-hunter2")
    with StubModel() as stub:
        for status in (401, 503):
            content = json.dumps({"error": {"message": "Wrong key: sk-hunter2!"}}).encode()
            stub.reply(content, status=status, content_type="application/json")
            _, error = await ask_failing(stub)
            assert error.message == "Wrong key: …!"
