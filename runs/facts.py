"""Log lines that people and programs can read: one for each fact, always with the same names."""

import json
import logging
from typing import TypedDict
from uuid import UUID


class RunNames(TypedDict):
    """What every line about a run tells."""

    run: UUID
    conversation: UUID
    attempt: int
    worker: str


def fact(
    logger: logging.Logger, what: str, *, run: UUID, level: int = logging.INFO, **names: object
) -> None:
    """Log `what` happened to a run, followed by name=value pairs.

    All of it is also in the record's `koda` attribute, for formatters that write JSON.
    """
    pairs = "".join(f" {name}={_plain(value)}" for name, value in names.items())
    extra = {"koda": {"fact": what, "run": str(run), **names}}
    logger.log(level, "run %s: %s%s", run, what, pairs, extra=extra)


def _plain(value: object) -> str:
    """A value that cannot end its pair or its line: quoted, where it could."""
    text = str(value)
    return text if text.isprintable() and not set(text) & {" ", '"'} else json.dumps(text)
