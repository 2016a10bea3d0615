"""Run two commands at the same time.

    python -m tests.together FIRST... -- SECOND...

The first one's output is shown as it comes, the second one's when it has ended. Tests wait a lot:
two suites together take little longer than one. Returns the first exit code that is not 0.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack


def main(arguments: Sequence[str]) -> int:
    if "--" not in arguments:
        sys.stderr.write(__doc__ or "")
        return 2
    cut = arguments.index("--")
    with tempfile.TemporaryFile() as kept, ExitStack() as ended:
        second = ended.enter_context(
            subprocess.Popen(arguments[cut + 1 :], stdout=kept, stderr=subprocess.STDOUT)
        )
        first = ended.enter_context(subprocess.Popen(arguments[:cut]))
        for process in (first, second):
            try:
                process.wait()
            except KeyboardInterrupt:  # it has reached the two as well: they end by themselves
                process.wait()
        kept.seek(0)
        sys.stdout.flush()
        sys.stdout.buffer.write(kept.read())
        sys.stdout.flush()
        return first.returncode or second.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
