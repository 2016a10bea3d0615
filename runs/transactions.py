"""Write transactions that wait their turn."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction

_sqlite_writer = threading.RLock()


@contextmanager
def write_transaction() -> Iterator[None]:
    """An atomic block; on SQLite, one at a time in this process.

    SQLite lets waiting writers poll, and the one that polls at the right moment wins: under load
    some starve until their time-out. A lock is fair enough and costs nothing.
    """
    if connection.vendor != "sqlite" or connection.in_atomic_block:
        with transaction.atomic():
            yield
        return
    with _sqlite_writer, transaction.atomic():
        yield
