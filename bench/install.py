"""The peers' packages, installed once into `bench/.cache`, in the versions named here."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import venv
from functools import cache
from pathlib import Path

CACHE = Path(__file__).resolve().parent / ".cache"
PATIENCE = 300.0
"""Seconds for one installation."""

SERVERS = (
    "starlette==1.10.0",
    "uvicorn==0.54.0",
    "uvloop==0.23.0",
    "httptools==0.9.0",
    "fastapi==0.165.0",
    "redis[hiredis]==8.1.0",
)
EVENTSTREAM = (*SERVERS, "Django==5.2.19", "django-eventstream==5.3.4", "psycopg[binary]==3.3.9")
NODE = ("resumable-stream@2.2.13", "redis@6.3.1", "@durable-streams/server@0.3.7",
        "@durable-streams/client@0.2.6")  # fmt: skip


class NotInstalled(Exception):
    """What a peer needs could not be had; the message says why."""


@cache
def peers_python(packages: tuple[str, ...] = SERVERS) -> Path:
    """A Python with these packages."""
    folder = _folder("python", packages)
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        venv.create(folder, clear=True, with_pip=True)
        _run([str(python), "-m", "pip", "install", "-qq", "--disable-pip-version-check", *packages])
        (folder / "complete").touch()
    return python


@cache
def node_modules() -> Path:
    """A folder with the `node_modules` of all Node peers."""
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            raise NotInstalled(f"there is no {program} here")
    folder = _folder("node", NODE)
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        quiet = ["--no-audit", "--no-fund", "--silent"]
        _run(["npm", "install", "--prefix", str(folder), *quiet, *NODE])
        (folder / "complete").touch()
    return folder


def _folder(kind: str, packages: tuple[str, ...]) -> Path:
    """Another set of versions is another folder."""
    tag = hashlib.sha256("\n".join((sys.version, *packages)).encode()).hexdigest()[:12]
    return CACHE / f"{kind}-{tag}"


def _run(command: list[str]) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        raise NotInstalled(f"{Path(command[0]).name} took over {PATIENCE:g} s") from None
    except subprocess.CalledProcessError as error:
        last = (error.stderr or error.stdout or "no reason given").strip().splitlines()[-1:]
        raise NotInstalled(f"not installed: {''.join(last)[:200]}") from None
