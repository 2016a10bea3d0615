"""Everything a model or a tool yields passes here before it is numbered.

Afterwards it can be stored as UTF-8 text or as Postgres jsonb, reads back equal, and means
the same to a JSON parser that has only doubles (a browser).
"""

import base64
import dataclasses
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from numbers import Integral, Real
from pathlib import PurePath
from typing import TypeAlias
from uuid import UUID

JSON: TypeAlias = "bool | int | float | str | list[JSON] | dict[str, JSON] | None"

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
MAX_DEPTH = 100
"""Containers within containers; far below what JSON parsers recurse into."""
MAX_EXACT_INT = 2**53 - 1
"""The last integer up to which every double is exact."""
MAX_PLAIN_FLOAT = 1e16
"""From here on a float is spelt with an exponent, which jsonb turns into an integer."""
SPLIT_BYTES = 64 * 1024

_SUSPECT = re.compile("[\0\ud800-\udfff]")
_PAIR = re.compile("([\ud800-\udbff])([\udc00-\udfff])")


class UncleanValue(ValueError):
    """This value has no faithful form in JSON; the message says where and why."""


class TextCleaner:
    """Cleans a text that comes in fragments.

    NUL becomes U+FFFD. A surrogate pair is joined, across fragments too: a high half at the
    end of one waits for the next. Lone halves become U+FFFD. What comes out, taken together,
    is `clean_text` of what went in, taken together.
    """

    def __init__(self) -> None:
        self.held = ""
        """The half of a pair that waits for the other one."""

    def feed(self, text: str) -> str:
        """What can be said so far; may be empty."""
        text = self.held + text
        self.held = ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            self.held = text[-1]
            text = text[:-1]
        return clean_text(text)

    def flush(self) -> str:
        """What was held back, at the end of the text or before something that is not text."""
        held, self.held = self.held, ""
        return clean_text(held)


def is_clean(text: str) -> bool:
    """Whether `clean_text` would change nothing."""
    return _SUSPECT.search(text) is None


def clean_text(text: str) -> str:
    """`text` with pairs of surrogates joined, lone ones and NUL replaced by U+FFFD."""
    if is_clean(text):
        return str.__str__(text)  # of a subclass too, a plain str
    return _SUSPECT.sub(REPLACEMENT, _PAIR.sub(_join, text))


def _join(pair: re.Match[str]) -> str:
    high, low = (ord(half) for half in pair.groups())
    return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))


def split_text(text: str, limit_bytes: int = SPLIT_BYTES) -> list[str]:
    """Pieces of at most `limit_bytes` (4 or more) in UTF-8, no code point split.

    An empty text has no pieces.
    """
    if limit_bytes < 4:
        raise ValueError("limit_bytes must be 4 or more: a code point may take 4.")
    encoded = text.encode("utf-8", "surrogatepass")
    if len(encoded) <= limit_bytes:
        return [text] if text else []
    pieces, start = [], 0
    while start < len(encoded):
        end = min(start + limit_bytes, len(encoded))
        while end < len(encoded) and encoded[end] & 0xC0 == 0x80:  # inside a code point
            end -= 1
        pieces.append(encoded[start:end].decode("utf-8", "surrogatepass"))
        start = end
    return pieces


def clean_json(value: object) -> JSON:
    """`value` as JSON that is the same after a round trip through any store or client.

    Text is cleaned, keys too; other keys become text. Numbers that a store or a browser would
    alter become text: integers beyond 2^53 - 1, floats from 1e16. -0.0 becomes 0.0; NaN and
    the infinities null. Decimal, UUID, path: text. Times: ISO 8601. timedelta: seconds. Enum:
    its value. bytes: text if they are UTF-8, else base64. Sets: sorted lists. Dataclasses and
    pydantic models: objects.

    Raises `UncleanValue` for any other type, nesting beyond `MAX_DEPTH`, a value that contains
    itself, and keys that become equal.
    """
    try:
        return _Cleaner().clean(value)
    except RecursionError:  # called from deep down
        raise UncleanValue("Not storable: the value is nested too deep.") from None


class _Cleaner:
    def __init__(self) -> None:
        self._path: list[str] = []
        self._inside: set[int] = set()

    def clean(self, value: object) -> JSON:
        match value:
            case None | bool():
                return value
            case Enum():
                return self.clean(value.value)
            case str() | bytes() | bytearray() | memoryview():
                return _text(value)
            case Integral():
                return self._integer(int(value))
            case Decimal() | Real() | timedelta():
                return _number(value)
            case date() | time() | UUID() | PurePath():
                return _spelt(value)
        return self._container(value)

    def _container(self, value: object) -> JSON:
        if id(value) in self._inside:
            raise self._unclean("the value contains itself")
        if len(self._inside) >= MAX_DEPTH:
            raise self._unclean(f"the value is nested more than {MAX_DEPTH} deep")
        self._inside.add(id(value))
        try:
            return self._members(value)
        finally:
            self._inside.discard(id(value))

    def _members(self, value: object) -> JSON:
        if isinstance(value, Mapping):
            return self._object(value.items())
        if isinstance(value, Set):
            return sorted(self._array(value), key=_canonical)
        if isinstance(value, Sequence):
            return self._array(value)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = dataclasses.fields(value)
            return self._object((field.name, getattr(value, field.name)) for field in fields)
        dump = getattr(value, "model_dump", None)
        if dump is not None and not isinstance(value, type):
            return self.clean(dump())
        raise self._unclean(f"an object of type {type(value).__name__} has no form in JSON")

    def _object(self, items: Iterable[tuple[object, object]]) -> JSON:
        cleaned: dict[str, JSON] = {}
        for key, value in items:
            name = self._key(key)
            if name in cleaned:
                raise self._unclean(f"two keys become {name!r}")
            cleaned[name] = self._member(f".{name}", value)
        return cleaned

    def _array(self, items: Iterable[object]) -> list[JSON]:
        return [self._member(f"[{index}]", item) for index, item in enumerate(items)]

    def _member(self, step: str, value: object) -> JSON:
        self._path.append(step)
        cleaned = self.clean(value)
        self._path.pop()
        return cleaned

    def _key(self, key: object) -> str:
        cleaned = self.clean(key)
        return cleaned if isinstance(cleaned, str) else _canonical(cleaned)

    def _integer(self, value: int) -> int | str:
        if abs(value) <= MAX_EXACT_INT:
            return value
        try:
            return str(value)
        except ValueError:  # Python refuses to spell out thousands of digits
            raise self._unclean("an integer has too many digits") from None

    def _unclean(self, reason: str) -> UncleanValue:
        path = "".join(self._path)
        place = f"${path[:100]}…" if len(path) > 100 else f"${path}"
        return UncleanValue(clean_text(f"Not storable: {reason}, at {place}."))


def _text(value: str | bytes | bytearray | memoryview) -> str:
    if isinstance(value, str):
        return clean_text(value)
    raw = bytes(value)
    try:
        return clean_text(raw.decode())
    except UnicodeDecodeError:
        return base64.b64encode(raw).decode()


def _number(value: Decimal | Real | timedelta) -> float | str | None:
    if isinstance(value, Decimal):
        return str(value) if value.is_finite() else None
    try:
        number = value.total_seconds() if isinstance(value, timedelta) else float(value)
    except OverflowError:  # a fraction beyond every float
        return None
    if not math.isfinite(number):
        return None
    if abs(number) >= MAX_PLAIN_FLOAT:
        return repr(number)
    return number + 0.0  # -0.0 + 0.0 is 0.0


def _spelt(value: date | time | UUID | PurePath) -> str:
    return value.isoformat() if isinstance(value, date | time) else clean_text(str(value))


def _canonical(value: JSON) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
