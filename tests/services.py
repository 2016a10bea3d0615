"""Run a command with a throwaway Postgres and Redis.

    python -m tests.services COMMAND...

sets DATABASE_URL and REDIS_URL, returns COMMAND's exit code and leaves nothing behind. A URL that
is set already is used as it is, and nothing is started for it.
"""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence

from tests.servers import postgres, redis

POLL = 0.1
GRACE = 10.0


def run(command: Sequence[str], environment: dict[str, str], signals: Sequence[int]) -> int:
    """Run the command to its end, or end it when one of our own signals asks for that."""
    if signals:
        return 128 + signals[0]
    process = subprocess.Popen(command, env=environment)
    while not signals:
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = process.wait(POLL)
            return code if code >= 0 else 128 - code
    # A Ctrl-C reached the command too: asked twice, it would not clean up.
    if signals[0] != signal.SIGINT:
        process.terminate()
    for last_word in (process.terminate, process.kill):
        try:
            process.wait(GRACE)
        except subprocess.TimeoutExpired:
            last_word()
    process.wait()
    return 128 + signals[0]


def main(command: Sequence[str]) -> int:
    if not command:
        sys.stderr.write(__doc__ or "")
        return 2
    # Handlers only take note, so that no server is lost between its start and its variable.
    signals: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _frame: signals.append(number))
    environment = dict(os.environ)
    with contextlib.ExitStack() as servers:
        for variable, server in (("DATABASE_URL", postgres), ("REDIS_URL", redis)):
            if not environment.get(variable):
                environment[variable] = servers.enter_context(server()).url
        return run(command, environment, signals)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
