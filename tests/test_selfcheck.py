"""`manage.py selfcheck` passes, and fails where it should: one fault, one failed check."""

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import psycopg
import pytest
import redis

from koda.selfcheck.layer import Disorder
from koda.selfcheck.processes import Processes
from koda.selfcheck.stops import one_interrupt
from tests.servers import alive
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parent.parent
POSTGRES = os.environ.get("DATABASE_URL", "").startswith("postgres")
REDIS_URL = os.environ.get("REDIS_URL")
OWN = "koda_selfcheck"
FAULTS = {"transitions": 1, "orderer": 2, "resume": 4, "merge": 5}

# Five self-checks at once: on a busy machine that takes its time.
pytestmark = pytest.mark.timeout(240)


class Place:
    """Where self-checks run: temporary files in a folder of their own, no data to touch."""

    def __init__(self, folder: Path) -> None:
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self.own_file = folder / "own.sqlite3"
        self.environment = {**os.environ, "TMPDIR": str(self.temporary)}
        if not POSTGRES:
            self.environment["DATABASE_URL"] = f"sqlite:///{self.own_file}"

    @contextmanager
    def selfcheck(self, **environment: str) -> Iterator[subprocess.Popen[str]]:
        process = subprocess.Popen(
            [sys.executable, "manage.py", "selfcheck"],
            cwd=ROOT,
            env={**self.environment, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        with process:
            try:
                yield process
            finally:
                if process.poll() is None:
                    process.terminate()

    def left_behind(self) -> list[str]:
        """Files, databases, and keys that never expire."""
        found = [path.name for path in self.temporary.iterdir()]
        if self.own_file.exists():
            found.append(self.own_file.name)
        return found + databases() + keys()


def databases() -> list[str]:
    if not POSTGRES:
        return []
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        query = "SELECT datname FROM pg_database WHERE starts_with(datname, %s)"
        return [name for (name,) in connection.execute(query, [OWN])]


def keys() -> list[str]:
    if not REDIS_URL:
        return []
    with redis.Redis.from_url(REDIS_URL) as client:
        return [key.decode() for key in client.scan_iter(f"*{OWN}*") if client.ttl(key) < 0]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return Place(tmp_path_factory.mktemp("selfcheck"))


@pytest.fixture(scope="module")
def reports(place):
    """Exit code and output of a self-check for each fault, and for none; all at the same time."""
    with contextlib.ExitStack() as stack:
        running = {None: stack.enter_context(place.selfcheck())}
        for fault in FAULTS:
            faulty = {"DJANGO_SETTINGS_MODULE": "tests.mutated_settings", "MUTATION": fault}
            running[fault] = stack.enter_context(place.selfcheck(**faulty))
        outputs = {fault: process.communicate()[0] for fault, process in running.items()}
        return {fault: (running[fault].returncode, outputs[fault]) for fault in running}


def verdicts(output: str) -> dict[int, str]:
    return {
        int(number): word
        for word, number in re.findall(r"^(ok|FAILED) +(\d)", output, re.MULTILINE)
    }


def test_all_six_checks_pass(reports):
    code, output = reports[None]
    assert verdicts(output) == dict.fromkeys(range(1, 7), "ok"), output
    assert code == 0


@pytest.mark.parametrize(("fault", "number"), FAULTS.items())
def test_one_fault_fails_exactly_the_check_that_is_for_it(reports, fault, number):
    code, output = reports[fault]
    assert verdicts(output) == {**dict.fromkeys(range(1, 7), "ok"), number: "FAILED"}, output
    assert code == 1


def test_nothing_is_left_behind(place, reports):
    assert len(reports) == 5
    assert place.left_behind() == []


def test_ctrl_c_under_way_leaves_nothing_behind(place):
    with place.selfcheck() as process:
        assert any(line.startswith("ok") for line in iter(process.stdout.readline, ""))
        assert_tidies_up(process, place, signal.SIGINT)


def test_a_stop_at_the_start_leaves_nothing_behind(place):
    with place.selfcheck() as process:
        wait_until(psutil.Process(process.pid).children, "a process to be started")
        assert_tidies_up(process, place, signal.SIGTERM)


def test_a_process_that_was_being_started_when_it_was_stopped_is_stopped_too(
    tmp_path, monkeypatch: pytest.MonkeyPatch
):
    started = []

    def stopped_meanwhile(*_command, **_options):
        started.append(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]))
        signal.raise_signal(signal.SIGTERM)
        return started[-1]

    monkeypatch.setattr("koda.selfcheck.processes.Popen", stopped_meanwhile)
    processes = Processes(tmp_path, {})
    with one_interrupt():
        with pytest.raises(KeyboardInterrupt):
            processes.start("worker")
        processes.stop()
    assert [process.returncode for process in started] == [-signal.SIGTERM]


def assert_tidies_up(process, place, number):
    children = psutil.Process(process.pid).children()
    assert children
    process.send_signal(number)
    output, _ = process.communicate(timeout=20)
    assert process.returncode == 130, output
    assert not [child for child in children if alive(child)]
    assert place.left_behind() == []


@pytest.mark.skipif(not POSTGRES, reason="SQLite has no rights to lack")
def test_a_role_that_may_not_make_databases_is_told_so(place):
    url = os.environ["DATABASE_URL"]
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE ROLE koda_selfcheck_plain LOGIN PASSWORD 'plain'")
        try:
            plain = re.sub(r"//[^@]*@", "//koda_selfcheck_plain:plain@", url)
            with place.selfcheck(DATABASE_URL=plain) as process:
                output, _ = process.communicate()
        finally:
            connection.execute("DROP ROLE koda_selfcheck_plain")
    assert process.returncode == 1
    assert 'ALTER ROLE "koda_selfcheck_plain" CREATEDB' in output
    assert "Traceback" not in output


def test_what_the_layer_does_is_disorder_and_the_same_every_time():
    def sent(seed: int) -> list[int]:
        disorder = Disorder(seed)
        released = [disorder.take({"seq": seq}) for seq in range(200)]
        while disorder.held:
            released.append(disorder.release())
        return [message["seq"] for batch in released for message in batch]

    numbers = sent(1)
    assert numbers == sent(1) != sent(2)
    assert numbers != sorted(numbers)
    assert len(set(numbers)) < 200  # some never
    assert len(numbers) > len(set(numbers))  # some again
    assert max(abs(place - seq) for place, seq in enumerate(numbers)) < 30
