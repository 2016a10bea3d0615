"""Processes of the systems that are measured: started, watched, ended, and what they used."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import psutil

from tests.servers import HOST, Postgres, Redis, free_port

__all__ = ["HOST", "DurablePostgres", "DurableRedis", "Process", "Redis", "Usage", "free_port"]

ROOT = Path(__file__).resolve().parent.parent
START_TIMEOUT = 60.0
STOP_TIMEOUT = 10.0
POLL = 0.02


class DurablePostgres(Postgres):
    """With fsync, as in production: what is committed is on the disk."""

    def command(self) -> list[str]:
        on = ["--fsync=on", "--full_page_writes=on", "--shared_buffers=256MB", "--max_wal_size=2GB"]
        return [*super().command(), *on]


class DurableRedis(Redis):
    """What is acknowledged is on the disk."""

    def command(self) -> list[str]:
        return [*super().command(), "--appendonly", "yes", "--appendfsync", "always"]


class Process:
    """A program with its log in a file."""

    def __init__(
        self, command: Sequence[str | Path], *, log: Path, environment: dict[str, str]
    ) -> None:
        self._log = log
        with log.open("ab") as out:
            self._process = subprocess.Popen(
                [str(word) for word in command],
                cwd=ROOT,
                env={"PATH": os.environ.get("PATH", os.defpath), **environment},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_until(self, ready: Callable[[], bool]) -> None:
        """Return once `ready()`. Raises RuntimeError with the end of its log."""
        deadline = time.monotonic() + START_TIMEOUT
        while not ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"did not start: {self.said()[-1000:]}")
            time.sleep(POLL)

    def said(self) -> str:
        return self._log.read_text(errors="replace")

    def has_said(self, words: str) -> bool:
        return words in self.said()

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Usage:
    """What processes and all their children have used up to now."""

    def __init__(self, pids: Iterable[int]) -> None:
        self._pids = list(pids)

    def _family(self) -> Iterable[psutil.Process]:
        for pid in self._pids:
            with contextlib.suppress(psutil.NoSuchProcess):
                process = psutil.Process(pid)
                yield process
                yield from process.children(recursive=True)

    def cpu(self) -> float:
        """Seconds of CPU; children that have ended are in their parent's account."""
        total = 0.0
        for process in self._family():
            with contextlib.suppress(psutil.NoSuchProcess):
                total += sum(process.cpu_times()[:4])
        return total

    def memory(self) -> int:
        """Bytes that nobody else has: shared pages would be counted many times."""
        total = 0
        for process in self._family():
            with contextlib.suppress(psutil.NoSuchProcess):
                total += process.memory_full_info().uss
        return total
