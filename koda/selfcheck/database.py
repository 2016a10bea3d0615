"""A database that is there for one self-check: nobody's data is touched."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.core.management import CommandError, call_command
from django.db import OperationalError, connection


@contextmanager
def temporary_database(name: str, directory: Path) -> Iterator[str]:
    """Make and migrate a database; the default connection leads there meanwhile.

    On Postgres it is a database called `name` on the same server, on SQLite a file in
    `directory`. Yields what DATABASES calls it. Raises CommandError when it cannot be made.
    """
    if connection.vendor not in {"sqlite", "postgresql"}:
        raise CommandError(f"Koda runs on Postgres and SQLite, not on {connection.vendor}.")
    on_server = connection.vendor == "postgresql"
    if on_server:
        _ensure_allowed()
    settings, own = connection.settings_dict, connection.settings_dict["NAME"]
    temporary = name if on_server else str(directory / f"{name}.sqlite3")
    try:
        if on_server:
            # template0: nobody can be connected to it, which would make this fail.
            _execute(f"CREATE DATABASE {connection.ops.quote_name(name)} TEMPLATE template0")
            _disconnect()
        settings["NAME"] = temporary
        call_command("migrate", verbosity=0, interactive=False)
        yield temporary
    finally:
        _disconnect()
        settings["NAME"] = own
        if on_server:
            _execute(f"DROP DATABASE IF EXISTS {connection.ops.quote_name(name)} WITH (FORCE)")
            _disconnect()


def _ensure_allowed() -> None:
    """Raise CommandError unless the server answers and the role may create databases."""
    try:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT rolname, rolcreatedb OR rolsuper FROM pg_roles WHERE rolname = current_user"
            )
            role, allowed = cursor.fetchone()
    except OperationalError as error:
        raise CommandError(f"The database does not answer: {error}") from None
    if not allowed:
        raise CommandError(
            f"The self-check makes a database of its own, which {role} may not: "
            f"ALTER ROLE {connection.ops.quote_name(role)} CREATEDB, or unset DATABASE_URL."
        )


def _execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def _disconnect() -> None:
    connection.close()
    if connection.vendor == "postgresql":
        connection.close_pool()  # type: ignore[attr-defined]
