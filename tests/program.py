"""One of the project's commands as a process."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx

from tests.live_databases import ROOT
from tests.servers import HOST
from tests.waiting import wait_until

START_TIMEOUT = 60.0
STOP_TIMEOUT = 30.0
LOG_LINES = 40


class Program:
    """One of the project's commands, with its log in a file."""

    def __init__(
        self, name: str, *command: str, environment: dict[str, str], log: Path, port: int = 0
    ) -> None:
        """`command` is what Python is started with."""
        self.name = name
        self.port = port
        self._command = command
        self._environment = environment
        self._log = log
        self._begun = 0
        self._marked = 0
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Return once it is at work; a gateway comes back on the port it had."""
        self.launch()
        self.wait()

    def launch(self) -> None:
        """Start it, and return at once."""
        with self._log.open("ab") as log:
            self._begun = log.tell()
            self._process = subprocess.Popen(
                [sys.executable, *self._command],
                cwd=ROOT,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def wait(self) -> None:
        """Return once it is at work."""
        wait_until(self._is_up, f"the start of {self.name}", timeout=START_TIMEOUT)

    def _is_up(self) -> bool:
        assert not self.ended(), f"{self.name} ended with {self.code}:\n{self.tail()}"
        if not self.port:
            return b"runs at once" in self._log.read_bytes()[self._begun :]
        with contextlib.suppress(httpx.TransportError):
            return httpx.get(f"{self.url}/readyz").status_code == 200
        return False

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None, f"{self.name} was never started"
        return self._process.pid

    @property
    def code(self) -> int | None:
        """The exit code; minus the signal's number if one ended it; None while it lives."""
        assert self._process is not None, f"{self.name} was never started"
        return self._process.poll()

    def ended(self) -> bool:
        return self.code is not None

    def reachable(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection((HOST, self.port), timeout=1):
            return True
        return False

    def terminate(self) -> None:
        """Ask it to end, as a deploy does. Returns at once."""
        if not self.ended():
            os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        """End it as a failing machine would."""
        os.kill(self.pid, signal.SIGKILL)
        wait_until(self.ended, f"the death of {self.name}")

    def stop(self) -> None:
        """End it, whatever state it is in."""
        self.terminate()
        try:
            wait_until(self.ended, f"the end of {self.name}", timeout=STOP_TIMEOUT)
        except AssertionError:
            self.kill()

    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def mark(self) -> None:
        """What the log says up to now is of no interest any more."""
        self._marked = len(self.log())

    def tail(self) -> str:
        return "\n".join(self.log()[self._marked :].splitlines()[-LOG_LINES:])
