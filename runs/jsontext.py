"""JSON as the log and the wires have it: compact, UTF-8, on one line. Pure."""

import json

import orjson


def dumps(data: object) -> bytes:
    """CR, LF and the other control characters come out escaped."""
    try:
        return orjson.dumps(data)
    except TypeError:  # integers beyond 64 bits, which JSON allows and Postgres keeps
        return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()
