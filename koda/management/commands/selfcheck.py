"""manage.py selfcheck"""

from __future__ import annotations

import os
import secrets
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import connection, connections

from koda.selfcheck.checks import CHECKS, QUESTION, Check, Stage
from koda.selfcheck.client import CheckFailed, Visitor
from koda.selfcheck.database import temporary_database
from koda.selfcheck.processes import NotStarted, Processes
from koda.selfcheck.stops import one_interrupt
from runs import ports

PATIENCE = 30.0
"""Seconds that all checks together may take."""

LAST_WORDS = 30
"""Lines of each log that a failure shows."""


class Command(BaseCommand):
    help = (
        "Prove in six checks that answers arrive in order, complete and once, and that a "
        "correction joins the answer in progress: over HTTP, with a gateway and a worker of its "
        "own, on a temporary database."
    )

    def handle(self, **options: Any) -> None:  # noqa: ANN401
        started = time.monotonic()
        try:
            with one_interrupt():
                failed = self._check()
        except KeyboardInterrupt:
            raise CommandError("Interrupted; nothing is left behind.", returncode=130) from None
        if failed:
            raise CommandError(f"{failed} of {len(CHECKS)} checks failed.")
        seconds = time.monotonic() - started
        self.stdout.write(self.style.SUCCESS(f"All {len(CHECKS)} checks passed in {seconds:.1f} s"))

    def _check(self) -> int:
        """Run the checks at the same time, report each; the number of those that failed."""
        name = f"koda_selfcheck_{secrets.token_hex(4)}"
        with ExitStack() as stack:
            directory = Path(stack.enter_context(TemporaryDirectory(prefix="koda-selfcheck-")))
            database = stack.enter_context(temporary_database(name, directory))
            processes = Processes(
                directory,
                {
                    "SELFCHECK_SETTINGS": os.environ["DJANGO_SETTINGS_MODULE"],
                    "SELFCHECK_DATABASE": database,
                    "SELFCHECK_PREFIX": name,
                },
            )
            # Left backwards: the processes end, so the threads do, so the database is free.
            pool = stack.enter_context(ThreadPoolExecutor(len(CHECKS)))
            stack.callback(processes.stop)
            try:
                stage = self._set(processes)
            except (NotStarted, CheckFailed) as error:
                raise CommandError(f"{error}\n{processes.last_words(LAST_WORDS)}") from None
            running = [pool.submit(_prove, check, stage) for _, check in CHECKS]
            failed = sum([self._report(i, future) for i, future in enumerate(running)])
            if failed:
                self.stderr.write(processes.last_words(LAST_WORDS))
            return failed

    def _set(self, processes: Processes) -> Stage:
        """Start what is checked, the way it would be deployed, and ask a first question."""
        commands = ["serve"] if ports.port().local else ["gateway", "worker"]
        self.stdout.write(f"On {connection.display_name}, with {' and '.join(commands)}:")
        for command in commands:
            processes.start(command, *(["--port", "0"] if command != "worker" else []))
        visitor = Visitor(processes.address(), deadline=time.monotonic() + PATIENCE)
        conversation = visitor.converse()
        return Stage(
            visitor=visitor,
            conversation=conversation,
            run=visitor.say(conversation, QUESTION).run_id,
            worker_log=lambda: processes.log(commands[-1]),
        )

    def _report(self, index: int, future: Future[str]) -> bool:
        """Print how a check ended; whether it failed."""
        try:
            evidence, failed = future.result(), False
        except CheckFailed as error:
            evidence, failed = str(error), True
        except Exception as error:  # noqa: BLE001 - whatever it is, the check found it
            evidence, failed = f"{type(error).__name__}: {error}", True
        verdict = self.style.ERROR("FAILED") if failed else self.style.SUCCESS("ok    ")
        self.stdout.write(f"{verdict} {index + 1} {CHECKS[index][0]}: {evidence}")
        self.stdout.flush()
        return failed


def _prove(check: Check, stage: Stage) -> str:
    """Run a check on a thread of its own, which gives its database connection back."""
    try:
        return check(stage)
    finally:
        connections.close_all()
