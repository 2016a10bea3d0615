"""The environment, read once: where the database and Redis are, and Django's own switches."""

import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dj_database_url

from runs.conf import ConfigError

TRUE = {"1", "true", "yes", "on"}
FALSE = {"0", "false", "no", "off", ""}
ORIGIN = re.compile(r"https?://[^\s/?#@*]+")


def flag(name: str, *, default: bool) -> bool:
    """A switch: 1/true/yes/on or 0/false/no/off."""
    value = os.environ.get(name, "").strip().lower()
    if name not in os.environ:
        return default
    if value in TRUE | FALSE:
        return value in TRUE
    raise ConfigError(f"{name}={value!r} is neither true nor false.")


def redis_url() -> str | None:
    """REDIS_URL, or None for the embedded mode."""
    url = os.environ.get("REDIS_URL", "").strip()
    if not url:
        return None
    if not url.startswith(("redis://", "rediss://", "unix://")):  # it may hold a password: unsaid
        raise ConfigError("REDIS_URL does not start with redis://, rediss:// or unix://.")
    return url


def database(base_dir: Path, *, lease: float) -> dict[str, Any]:
    """Django's DATABASES entry for DATABASE_URL (postgres:// or sqlite:///).

    `lease` is in seconds: no transaction of a process that froze may hold a row for longer.
    """
    url = os.environ.get("DATABASE_URL", "").strip() or f"sqlite:///{base_dir / 'db.sqlite3'}"
    scheme = url.partition(":")[0]
    if scheme in {"postgres", "postgresql"}:
        ours = _postgres(lease)
    elif scheme == "sqlite":
        ours = _sqlite()
    else:
        raise ConfigError("DATABASE_URL starts with neither postgres:// nor sqlite:///.")
    try:
        parsed = dj_database_url.parse(url)
    except ValueError:  # its text may quote half of a password
        raise ConfigError(
            "DATABASE_URL cannot be read: write reserved characters of its parts as %XX."
        ) from None
    options = {**ours.pop("OPTIONS"), **parsed.get("OPTIONS", {})}
    return {**parsed, **ours, "OPTIONS": options}


def _postgres(lease: float) -> dict[str, Any]:
    """A pool, so that a process holds ten connections at most however many threads ask.

    Health checks make a connection that died with its server be replaced, not handed out. The
    server ends transactions that stand idle for longer than a lease: a worker that is frozen in
    the middle of one would keep its run locked, and nobody could take it over.
    """
    return {
        "CONN_MAX_AGE": 0,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {
            "pool": {"min_size": 0, "max_size": 10, "timeout": 10, "max_idle": 60},
            "connect_timeout": 5,
            "options": f"-c idle_in_transaction_session_timeout={round(lease * 1000)}",
        },
    }


def _sqlite() -> dict[str, Any]:
    """IMMEDIATE takes the write lock at BEGIN, where waiting works; WAL lets readers go on."""
    return {
        "CONN_MAX_AGE": 0,
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL;",
        },
        # Tests take a file too: threads cannot share a database in memory.
        "TEST": {"NAME": str(Path(tempfile.gettempdir()) / f"koda-test-{os.getpid()}.sqlite3")},
    }


def secret_key(base_dir: Path, *, fallback: Callable[[], str]) -> str:
    """DJANGO_SECRET_KEY, or a random one made once and kept beside the database.

    Kept, because sessions are signed with it: a restart must not turn visitors into strangers.
    Several machines need the same one, so there the variable has to be set.
    """
    key = os.environ.get("DJANGO_SECRET_KEY", "").strip()
    if key:
        return key
    kept = base_dir / ".secret_key"
    if not kept.exists():
        draft = base_dir / f".secret_key.{os.getpid()}"
        draft.touch(mode=0o600)
        draft.write_text(fallback())
        draft.replace(kept)
    return kept.read_text().strip()


def hosts() -> list[str]:
    """DJANGO_ALLOWED_HOSTS, a comma list. Without it Django serves loopback names only."""
    return _comma_list("DJANGO_ALLOWED_HOSTS") or ["localhost", "127.0.0.1", "[::1]"]


def origins(name: str) -> list[str]:
    """A comma list of origins, such as `https://shop.example.com`; empty without one."""
    named = _comma_list(name)
    for origin in named:
        if not ORIGIN.fullmatch(origin):
            raise ConfigError(f"{name}: {origin!r} is not an origin like https://example.com.")
    return named


def _comma_list(name: str) -> list[str]:
    parts = os.environ.get(name, "").split(",")
    return [part.strip() for part in parts if part.strip()]
