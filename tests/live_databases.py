"""Databases for running systems: copies of one that is migrated once."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import psutil
import psycopg

ROOT = Path(__file__).resolve().parent.parent


class Database:
    """One system's database. Asked on a single connection, so that tests may ask often."""

    def __init__(self, url: str, *, file: Path | None, drop: Callable[[], None]) -> None:
        self.url = url
        self._file = file
        self._drop = drop
        self._connection = self._connect()

    def _connect(self) -> Any:  # noqa: ANN401 - of sqlite3 or psycopg
        if self._file:
            return sqlite3.connect(self._file, isolation_level=None, timeout=20)
        return psycopg.connect(self.url, autocommit=True)

    def rows(self, sql: str, *parameters: object) -> list[tuple[Any, ...]]:
        """The rows that `sql` finds; its parameters are written as %s."""
        placed = sql.replace("%s", "?") if self._file else sql
        if getattr(self._connection, "broken", False):  # the server was started anew
            self._connection = self._connect()
        return list(self._connection.execute(placed, parameters).fetchall())

    def count(self, table: str) -> int:
        [(number,)] = self.rows(f"SELECT count(*) FROM {table}")
        return int(number)

    def writable(self) -> bool:
        """Whether no process holds SQLite's write lock right now. Postgres has no such lock."""
        if not self._file:
            return True
        probe = sqlite3.connect(self._file, isolation_level=None, timeout=0.2)
        with contextlib.closing(probe):
            try:
                probe.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                return False
            probe.execute("ROLLBACK")
        return True

    def connections_of(self, pid: int, name: str) -> int:
        """How many connections a process holds; on the server it is known by its name."""
        if self._file:
            return sum(file.path == str(self._file) for file in psutil.Process(pid).open_files())
        [(number,)] = self.rows(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name = %s",
            name,
        )
        return int(number)

    def close(self) -> None:
        self._connection.close()
        self._drop()


class Databases:
    """SQLite files, or databases on a server: by default where DATABASE_URL and REDIS_URL say."""

    def __init__(self, directory: Path, *, server: str | None = None, redis: str = "") -> None:
        self._directory = directory
        self._server = os.environ.get("DATABASE_URL", "") if server is None else server
        self._redis = os.environ.get("REDIS_URL", "") if server is None else redis
        assert bool(self._server) == bool(self._redis), "set both DATABASE_URL and REDIS_URL"
        self._numbers = count(1)
        self._template = f"koda_live_{uuid4().hex}"
        self._run(f"CREATE DATABASE {self._template}")
        environment = {**os.environ, "DATABASE_URL": self._url_of(self._template)}
        migrate = [sys.executable, "manage.py", "migrate", "--verbosity=0"]
        subprocess.run(migrate, cwd=ROOT, env=environment, check=True)

    @property
    def services(self) -> bool:
        """Whether there are a Postgres and a Redis."""
        return bool(self._server)

    def create(self) -> Database:
        """A new one, migrated and empty."""
        name = f"{self._template}_{next(self._numbers)}"
        url = self._url_of(name)
        if not self._server:
            file = self._file_of(name)
            shutil.copy(self._file_of(self._template), file)
            return Database(url, file=file, drop=file.unlink)
        self._run(f"CREATE DATABASE {name} TEMPLATE {self._template}")
        drop = f"DROP DATABASE {name} WITH (FORCE)"
        return Database(url, file=None, drop=lambda: self._run(drop))

    def redis_url(self) -> str:
        """Redis with a database number that the tests' own cache does not use; "" without one."""
        if not self._redis:
            return ""
        return urlsplit(self._redis)._replace(path=f"/{1 + next(self._numbers) % 15}").geturl()

    def close(self) -> None:
        self._run(f"DROP DATABASE {self._template} WITH (FORCE)")

    def _url_of(self, name: str) -> str:
        if not self._server:
            return f"sqlite:///{self._file_of(name)}"
        return urlsplit(self._server)._replace(path=f"/{name}").geturl()

    def _file_of(self, name: str) -> Path:
        return self._directory / f"{name}.sqlite3"

    def _run(self, sql: str) -> None:
        if self._server:
            with psycopg.connect(self._server, autocommit=True) as connection:
                connection.execute(sql)
