"""A process that was told to stop stops, even if a thread of it never ends."""

from __future__ import annotations

import subprocess
import sys

STUCK = """
import threading
from concurrent.futures import ThreadPoolExecutor
from runs.leaving import leave_within
ThreadPoolExecutor(1).submit(threading.Event().wait)
{}
print("the end of the program", flush=True)
"""


def run(last_line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", STUCK.format(last_line)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_thread_that_never_ends_does_not_keep_the_process():
    ended = run("leave_within(0.2)")
    assert (ended.returncode, ended.stdout) == (0, "the end of the program\n")
    assert "leaving threads behind" in ended.stderr


def test_a_process_that_ends_by_itself_is_left_alone():
    ended = run("leave_within(30); import os; threading.Timer(0.2, os._exit, [7]).start()")
    assert (ended.returncode, ended.stderr) == (7, "")
