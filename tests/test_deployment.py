"""The image and the compose file: what they say is so, and what they run works."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml

from runs.conf import KodaSettings
from tests.live import System
from tests.live_databases import ROOT, Databases
from tests.program import Program
from tests.servers import free_port
from tests.waiting import wait_until

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
OURS = {name for name, service in SERVICES.items() if service.get("image") == "koda"}
HERE = {"python": sys.executable}


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile as (instruction, rest) pairs."""
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines)]


def copied() -> list[str]:
    """What the image takes from the checkout."""
    sources = [rest.split() for word, rest in instructions() if word == "COPY"]
    return [path for words in sources if not words[0].startswith("--") for path in words[:-1]]


def seconds(duration: str) -> int:
    assert duration.endswith("s")
    return int(duration[:-1])


# The files -----------------------------------------------------------------------------------


def test_the_compose_file_has_all_that_a_deployment_needs():
    assert set(SERVICES) == {"postgres", "redis", "migrate", "gateway", "worker"}
    assert {"migrate", "gateway", "worker"} == OURS
    for name, service in SERVICES.items():
        assert service["restart"] in {"unless-stopped", "on-failure"}, name
        if name != "migrate":
            assert service["healthcheck"]["test"][0] == "CMD", name
        for other, wait in service.get("depends_on", {}).items():
            assert other in SERVICES
            healthy = "healthcheck" in SERVICES[other]
            expected = "service_healthy" if healthy else "service_completed_successfully"
            assert wait["condition"] == expected, f"{name} → {other}"
    assert [volume.partition(":")[0] for volume in SERVICES["postgres"]["volumes"]] == ["postgres"]
    assert set(COMPOSE["volumes"]) == {"postgres"}


def test_no_secret_has_a_default_and_no_port_is_open_to_the_world():
    text = (ROOT / "docker-compose.yml").read_text()
    for secret in ("POSTGRES_PASSWORD", "DJANGO_SECRET_KEY"):
        used = re.findall(rf"\$\{{{secret}([^}}]*)\}}", text)
        assert used
        assert all(default.startswith(":?") for default in used)
    ports = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert ports == ["127.0.0.1:8000:8000"]


def test_processes_get_the_time_that_they_need_to_end():

    drain = KodaSettings.model_fields["drain_timeout"].default
    assert seconds(SERVICES["worker"]["stop_grace_period"]) >= drain + 10
    assert seconds(SERVICES["gateway"]["stop_grace_period"]) >= 10


def test_the_image_runs_as_an_ordinary_user_with_pinned_packages():
    lines = instructions()
    stage = lines[max(i for i, (word, _) in enumerate(lines) if word == "FROM") :]
    assert ("USER", "koda") in stage
    assert stage.index(("USER", "koda")) > max(
        i for i, (word, _) in enumerate(stage) if word in {"COPY", "RUN"}
    )
    installs = [rest for word, rest in lines if word == "RUN" and "pip install" in rest]
    assert installs
    assert all("--constraint constraints.txt" in rest for rest in installs)
    assert all("pip" not in rest for word, rest in stage if word == "RUN")


def test_the_image_has_a_python_that_the_project_supports():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for word, rest in instructions():
        if word == "FROM":
            version = re.match(r"python:([0-9.]+)-slim", rest)
            assert version
            assert f"Programming Language :: Python :: {version[1]}" in project["classifiers"]


def test_the_image_is_made_of_what_the_build_can_see():
    visible = (ROOT / ".dockerignore").read_text().splitlines()
    for path in copied():
        assert (ROOT / path).exists(), path
        assert any(fnmatch(f"!{path}", line) for line in visible), path
    for package in ("koda", "runs", "streaming", "templates", "manage.py"):
        assert package in copied()
    assert "*" in visible, "whatever is not named must stay out: .env, .git, databases"


def test_the_image_serves_what_the_compose_file_serves():
    [command] = [rest for word, rest in instructions() if word == "CMD"]
    assert yaml.safe_load(command) == SERVICES["gateway"]["command"]


# The commands ----------------------------------------------------------------------------------


@pytest.fixture
def ports() -> dict[str, str]:
    """The ports of the compose file, and free ones in their place."""
    return {"8000": str(free_port()), "9100": str(free_port())}


@pytest.fixture
def environment(live: System) -> dict[str, str]:
    return {
        **live.environment_of("deployed"),
        "DJANGO_ALLOWED_HOSTS": "localhost,127.0.0.1",
        "KODA_DRAIN_TIMEOUT": "1",
    }


@pytest.fixture
def deployed(
    request: pytest.FixtureRequest,
    ports: dict[str, str],
    environment: dict[str, str],
    tmp_path: Path,
) -> Iterator[Program]:
    """A service's command, as the compose file has it but for the ports."""
    python, manage, *arguments = SERVICES[request.param]["command"]
    assert (python, manage) == ("python", "manage.py")
    here = [ports.get(argument, argument) for argument in arguments]
    log = tmp_path / request.param
    program = Program(request.param, manage, *here, environment=environment, log=log)
    program.launch()
    yield program
    program.stop()


def is_healthy(service: str, ports: dict[str, str]) -> bool:
    """What the compose file's health check says."""
    _, *command = SERVICES[service]["healthcheck"]["test"]
    for inside, outside in ports.items():
        command = [word.replace(f":{inside}/", f":{outside}/") for word in command]
    program, *arguments = command
    found = subprocess.run([HERE[program], *arguments], capture_output=True, check=False)
    return found.returncode == 0


@pytest.mark.parametrize(
    ("deployed", "service"), [("gateway", "gateway"), ("worker", "worker")], indirect=["deployed"]
)
def test_a_service_starts_gets_healthy_and_ends_when_told(
    deployed: Program, service: str, ports: dict[str, str]
):
    assert not is_healthy("worker" if service == "gateway" else "gateway", ports)
    wait_until(lambda: deployed.ended() or is_healthy(service, ports), "health", timeout=60)
    deployed.terminate()
    patience = seconds(SERVICES[service]["stop_grace_period"])
    wait_until(deployed.ended, "the end", timeout=patience)
    assert deployed.code == 0, deployed.tail()


def test_the_migrations_run_as_the_compose_file_has_them(databases: Databases):
    database = databases.create()
    python, *arguments = SERVICES["migrate"]["command"]
    environment = {**os.environ, "DATABASE_URL": database.url}
    subprocess.run([HERE[python], *arguments], cwd=ROOT, env=environment, check=True)
    assert database.count("koda_runs") == 0
    database.close()
