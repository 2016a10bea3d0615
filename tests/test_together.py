"""Two commands at the same time, as `make test` runs its suites."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.live_databases import ROOT


def together(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.together", *arguments]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )


def saying(text: str, code: int) -> list[str]:
    return [sys.executable, "-c", f"import sys; print({text!r}); sys.exit({code})"]


@pytest.mark.parametrize(("codes", "expected"), [((0, 0), 0), ((3, 0), 3), ((0, 4), 4)])
def test_both_are_heard_and_either_can_fail(codes: tuple[int, int], expected: int):
    done = together(*saying("one", codes[0]), "--", *saying("two", codes[1]))
    assert done.stdout.split() == ["one", "two"]
    assert done.returncode == expected


def test_they_run_at_the_same_time(tmp_path):
    """Each waits for the file that the other makes."""
    script = "import sys, pathlib as p, time\np.Path(sys.argv[1]).touch()\n"
    script += "end = time.time() + 30\n"
    script += "while not p.Path(sys.argv[2]).exists(): assert time.time() < end"
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    run = [sys.executable, "-c", script]
    assert together(*run, one, two, "--", *run, two, one).returncode == 0
