"""What was seen and what is stored. All times are seconds since the epoch, of one machine."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from tests.live_databases import Database


@dataclass(slots=True)
class Seen:
    """An event as a watcher received it."""

    id: int
    type: str
    data: Any
    at: float


@dataclass
class Transcript:
    """What one watcher received, over all its connections."""

    run_id: str
    watcher: str
    seen: list[Seen] = field(default_factory=list)
    complete: bool = False
    """Followed to the terminal event."""
    present: list[tuple[float, float]] = field(default_factory=list)
    """From when till when it was connected and reading."""
    errors: list[str] = field(default_factory=list)
    """Codes of `error` events."""
    connections: int = 0
    problem: str = ""
    """Why it gave up, if it did."""

    def there(self, at: float) -> bool:
        """Whether it was connected and reading at this time."""
        return any(since <= at <= till for since, till in self.present)


@dataclass(frozen=True, slots=True)
class Accepted:
    """A message that was answered with 2xx."""

    name: str
    run_id: str
    merged: bool
    at: float


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer that was no success."""

    at: float
    call: str
    status: int
    body: str


@dataclass(frozen=True, slots=True)
class Cancelled:
    """A run that was cancelled while the model was answering."""

    run_id: str
    at: float
    closed: float
    """When the connection to the model was closed."""


@dataclass(frozen=True, slots=True)
class Happened:
    """A fault as it took place."""

    kind: str
    target: str
    began: float
    ended: float
    """When what it hit was back."""
    held: tuple[str, ...] = ()
    """Runs that the process held."""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """A stored event."""

    seq: int
    type: str
    data: Any
    at: float


@dataclass
class StoredRun:
    id: str
    conversation: str
    turn: int
    status: str
    attempt: int
    next_seq: int
    output: str
    error: Any
    inputs: list[str]
    log: list[Row] = field(default_factory=list)


@dataclass
class Evidence:
    transcripts: list[Transcript] = field(default_factory=list)
    accepted: list[Accepted] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    happened: list[Happened] = field(default_factory=list)
    cancels: list[Cancelled] = field(default_factory=list)
    runs: dict[str, StoredRun] = field(default_factory=dict)
    deaths: list[str] = field(default_factory=list)
    """Processes that ended although nobody ended them, or not as they should."""


def stored(database: Database) -> dict[str, StoredRun]:
    """All runs with their inputs and logs, as the database has them."""
    runs: dict[str, StoredRun] = {}
    sql = (
        "SELECT id, conversation_id, turn, status, attempt, next_seq, output, error FROM koda_runs"
    )
    for id, conversation, turn, status, attempt, next_seq, output, error in database.rows(sql):
        run = StoredRun(
            _id(id), _id(conversation), turn, status, attempt, next_seq, output, _json(error), []
        )
        runs[run.id] = run
    sql = "SELECT run_id, text FROM koda_run_inputs ORDER BY run_id, position"
    for run_id, text in database.rows(sql):
        runs[_id(run_id)].inputs.append(text)
    sql = "SELECT run_id, seq, type, data, created_at FROM koda_messages ORDER BY run_id, seq"
    for run_id, seq, type, data, created_at in database.rows(sql):
        runs[_id(run_id)].log.append(Row(seq, type, _json(data), _time(created_at)))
    return runs


def _id(value: object) -> str:
    return str(UUID(str(value)))


def _json(value: object) -> object:
    return json.loads(value) if isinstance(value, str) else value


def _time(value: datetime | str) -> float:
    if isinstance(value, str):  # SQLite's are in UTC and do not say so
        value = datetime.fromisoformat(value).replace(tzinfo=UTC)
    return value.timestamp()
