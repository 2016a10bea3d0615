"""Settings: the environment decides, and a wrong value stops the start with one sentence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from koda import env
from runs import conf
from runs.conf import ConfigError

ROOT = Path(__file__).parent.parent


def start(command: str = "check", **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", command],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("KODA_LEASE", "soon"),
        ("KODA_LEASE", "-1"),
        ("KODA_LEASE", "inf"),
        ("KODA_FLUSH_INTERVAL", "0.5"),
        ("KODA_MAX_ATTEMPTS", "0"),
        ("KODA_ORDERER_CAP", "1.5"),
        ("KODA_FRAGMENT_RETENTION", "-1"),
        ("KODA_REPLAY_CAP", "0"),
        ("KODA_AGENTS", "support"),
        ("KODA_AGENTS", "=shop.agents.support"),
        ("KODA_ALLOW_ANONYMOUS", "maybe"),
    ],
)
def test_a_wrong_value_is_named(monkeypatch: pytest.MonkeyPatch, name: str, value: str):
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=f"^{name}='{value}' is not a valid setting: .+\\.$"):
        conf.load()


def test_a_heartbeat_slower_than_the_lease_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("KODA_HEARTBEAT", "30")
    with pytest.raises(ConfigError, match=r"KODA_HEARTBEAT .*KODA_LEASE"):
        conf.load()


def test_the_environment_overrules_what_the_project_passes(monkeypatch: pytest.MonkeyPatch):
    assert conf.load(allow_anonymous=False).allow_anonymous is False
    monkeypatch.setenv("KODA_ALLOW_ANONYMOUS", "1")
    assert conf.load(allow_anonymous=False).allow_anonymous is True


def test_agents_are_a_comma_list(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("KODA_AGENTS", " support = shop.agents.support , other=a.b,")
    assert conf.load().agents == {"support": "shop.agents.support", "other": "a.b"}


def test_every_setting_of_the_contract_has_its_default():
    defaults = {name: field.default for name, field in conf.KodaSettings.model_fields.items()}
    assert defaults["merge_window"] == 30
    assert (defaults["ping_interval"], defaults["gap_wait"], defaults["orderer_cap"]) == (15, 2, 64)
    assert (defaults["flush_fragments"], defaults["flush_interval"]) == (40, 0.005)
    assert (defaults["lease"], defaults["heartbeat"], defaults["sweep_interval"]) == (30, 10, 2)
    assert (defaults["run_timeout"], defaults["idle_timeout"]) == (600, 60)
    assert (defaults["drain_timeout"], defaults["max_attempts"]) == (30, 3)
    assert (defaults["fragment_retention"], defaults["replay_cap"]) == (6 * 3600, 1000)
    assert (defaults["max_active_runs"], defaults["messages_per_minute"]) == (200, 600)
    assert all(field.description for field in conf.KodaSettings.model_fields.values())


@pytest.mark.parametrize(
    ("name", "value"),
    [("DATABASE_URL", "mysql://x/y"), ("REDIS_URL", "http://x"), ("DJANGO_DEBUG", "perhaps")],
)
def test_a_wrong_url_or_switch_stops_the_start_with_a_sentence(name: str, value: str):
    result = start(**{name: value})
    assert result.returncode == 1
    assert result.stderr.startswith(f"koda: {name}")
    assert "Traceback" not in result.stderr


def test_a_wrong_agent_stops_the_worker_with_a_sentence():
    result = start("worker", KODA_AGENTS="broken=nowhere.agents.support")
    assert result.returncode == 1
    assert "broken" in result.stderr
    assert "nowhere" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_default_agent_that_is_not_there_stops_the_start():
    result = start(KODA_DEFAULT_AGENT="nobody")
    assert result.returncode == 1
    assert "KODA_DEFAULT_AGENT='nobody'" in result.stderr


def test_a_url_for_postgres_makes_a_bounded_pool(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DATABASE_URL", "postgres://u:p@db:5433/koda?sslmode=require")
    database = env.database(ROOT, lease=30)
    assert (database["NAME"], database["HOST"], database["PORT"]) == ("koda", "db", 5433)
    assert database["OPTIONS"]["sslmode"] == "require"
    assert database["OPTIONS"]["pool"]["max_size"] == 10


def test_a_url_for_sqlite_names_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("DATABASE_URL", f"sqlite:///{tmp_path}/x.sqlite3")
    database = env.database(ROOT, lease=30)
    assert database["NAME"] == f"{tmp_path}/x.sqlite3"
    assert database["OPTIONS"]["transaction_mode"] == "IMMEDIATE"


def test_a_secret_key_is_made_once_and_kept_private(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.delenv("DJANGO_SECRET_KEY", raising=False)
    first = env.secret_key(tmp_path, fallback=lambda: "random")
    assert env.secret_key(tmp_path, fallback=lambda: "another") == first == "random"
    assert (tmp_path / ".secret_key").stat().st_mode & 0o077 == 0
    monkeypatch.setenv("DJANGO_SECRET_KEY", "given")
    assert env.secret_key(tmp_path, fallback=lambda: "x") == "given"
