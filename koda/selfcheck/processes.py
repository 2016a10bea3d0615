"""The gateway and the worker under test, as a deployment would start them."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from subprocess import Popen

from koda.selfcheck.stops import heard_afterwards

HOST = "127.0.0.1"
PATIENCE = 30.0
"""Seconds that the gateway has to start."""

GRACE = 10.0
"""Seconds that a process has to end when it is told to; then it is killed."""

POLL = 0.02


class NotStarted(Exception):
    """A process ended, or said nothing, before it was ready."""


class Processes:
    """Management commands running beside this one, each with a log of its own."""

    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        self._directory = directory
        self._environment = {
            # KODA_*: somebody's tuning, see `settings`. The path: what can be imported here.
            **{name: value for name, value in os.environ.items() if not name.startswith("KODA_")},
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "PYTHONUNBUFFERED": "1",
            "DJANGO_SETTINGS_MODULE": "koda.selfcheck.settings",
            **environment,
        }
        self._running: dict[str, Popen[bytes]] = {}

    def start(self, command: str, *arguments: str) -> None:
        """Start it; asked to end meanwhile, have it in the books first: it is to be stopped too."""
        with heard_afterwards(), self._path(command).open("wb") as log:
            self._running[command] = Popen(
                [sys.executable, "-m", "django", command, *arguments],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def address(self) -> tuple[str, int]:
        """Where HTTP is served, once it is. Raises NotStarted."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            logs = "".join(self.log(command) for command in self._running)
            if found := re.search(rf"http://{re.escape(HOST)}:(\d+)", logs):
                return HOST, int(found[1])
            for command, process in self._running.items():
                if process.poll() is not None:
                    raise NotStarted(f"{command} ended with code {process.returncode}")
            time.sleep(POLL)
        raise NotStarted(f"nobody serves HTTP after {PATIENCE:g} s")

    def log(self, command: str) -> str:
        """What it has written so far."""
        return self._path(command).read_text(errors="replace")

    def last_words(self, lines: int) -> str:
        """The end of each log."""
        return "\n".join(
            f"--- {command}\n" + "\n".join(self.log(command).splitlines()[-lines:])
            for command in self._running
        )

    def stop(self) -> None:
        """End them as a deploy would, and make sure."""
        for process in self._running.values():
            process.terminate()
        for process in self._running.values():
            try:
                process.wait(GRACE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _path(self, command: str) -> Path:
        return self._directory / f"{command}.log"
