"""What workers say of themselves, for people to look at. Every time is the database's."""

from __future__ import annotations

from datetime import timedelta

from django.db.models.functions import Now

from runs.models import WorkerProcess
from runs.transactions import write_transaction


def report(name: str, *, concurrency: int, running: int) -> None:
    """Say that this worker lives, and how many of its slots are taken."""
    worker = WorkerProcess(name=name, concurrency=concurrency, running=running)
    with write_transaction():
        WorkerProcess.objects.bulk_create(
            [worker],
            update_conflicts=True,
            unique_fields=["name"],
            update_fields=["concurrency", "running", "seen_at"],
        )


def forget(name: str) -> None:
    """Take a worker that has stopped off the list."""
    with write_transaction():
        WorkerProcess.objects.filter(pk=name).delete()


def clear_dead(older_than: timedelta) -> int:
    """Take workers unheard of for so long off the list; how many there were."""
    with write_transaction():
        deleted, _ = WorkerProcess.objects.filter(seen_at__lt=Now() - older_than).delete()
    return deleted
