"""What models and tools yield becomes storable text and JSON."""

import json
import math
import uuid
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from fractions import Fraction
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from runs.sanitize import (
    JSON,
    MAX_DEPTH,
    MAX_EXACT_INT,
    TextCleaner,
    UncleanValue,
    clean_json,
    clean_text,
    split_text,
)

HIGH, LOW, BAD = "\ud83d", "\ude00", "\ufffd"
any_text = st.text(st.characters(codec=None) | st.sampled_from(["\0", HIGH, LOW]))


@pytest.mark.parametrize(
    ("given_text", "cleaned"),
    [
        ("", ""),
        ("plain", "plain"),
        ("a\0b", f"a{BAD}b"),
        (HIGH + LOW, "😀"),
        (LOW + HIGH, BAD + BAD),
        (HIGH + HIGH + LOW, BAD + "😀"),
        (f"a{HIGH}b", f"a{BAD}b"),
        ("a\u2028b\x85\r\n\x1c", "a\u2028b\x85\r\n\x1c"),
    ],
)
def test_text_keeps_everything_but_nul_and_lone_surrogates(given_text, cleaned):
    assert clean_text(given_text) == cleaned


def test_a_text_subclass_becomes_plain_text():
    class Safe(str):
        __slots__ = ()

        def __str__(self):
            return self

    assert type(clean_text(Safe("a"))) is str


def test_a_pair_cut_in_two_is_joined_and_a_lone_half_is_flushed():
    cleaner = TextCleaner()
    assert [cleaner.feed("a" + HIGH), cleaner.feed(""), cleaner.feed(LOW + "b")] == ["a", "", "😀b"]
    assert [cleaner.feed(HIGH), cleaner.feed("c"), cleaner.flush()] == ["", BAD + "c", ""]
    assert [cleaner.feed(HIGH), cleaner.flush(), cleaner.flush()] == ["", BAD, ""]


@given(st.lists(any_text))
def test_fragments_add_up_to_the_whole_text_cleaned(fragments):
    cleaner = TextCleaner()
    spoken = [cleaner.feed(fragment) for fragment in fragments]
    together = "".join([*spoken, cleaner.flush()])
    assert together == clean_text("".join(fragments))
    assert together.encode().decode() == together
    assert "\0" not in together


@given(any_text, st.integers(4, 12))
def test_split_text_cuts_between_code_points(text, limit):
    pieces = split_text(text, limit)
    assert "".join(pieces) == text
    assert all(0 < len(piece.encode("utf-8", "surrogatepass")) <= limit for piece in pieces)


def test_split_text_fills_its_pieces():
    assert split_text("") == []
    assert split_text("x" * 65536) == ["x" * 65536]
    assert [len(piece) for piece in split_text("x" * 65537)] == [65536, 1]
    assert split_text("你好😀a", 4) == ["你", "好", "😀", "a"]
    assert sum(map(len, split_text("你" * 700_000))) == 700_000
    with pytest.raises(ValueError, match="4 or more"):
        split_text("x", 3)


class Colour(Enum):
    RED = "red"


class Level(IntEnum):
    HIGH = 3


@dataclass
class Point:
    x: int
    tags: frozenset[str]


class Model(BaseModel):
    when: date


@pytest.mark.parametrize(
    ("value", "cleaned"),
    [
        (None, None),
        (True, True),
        (MAX_EXACT_INT, MAX_EXACT_INT),
        (-MAX_EXACT_INT, -MAX_EXACT_INT),
        (MAX_EXACT_INT + 1, "9007199254740992"),
        (2**64, "18446744073709551616"),
        (1.5, 1.5),
        (5e-324, 5e-324),
        (1e308, "1e+308"),
        (1e16, "1e+16"),
        (math.nan, None),
        (math.inf, None),
        (-math.inf, None),
        (Fraction(1, 4), 0.25),
        (Fraction(10**400), None),
        (Decimal("12.50"), "12.50"),
        (Decimal("NaN"), None),
        ("a\0" + HIGH, "a" + BAD * 2),
        (b"caf\xc3\xa9", "café"),
        (bytearray(b"\xff\x00"), "/wA="),
        (memoryview(b"ok"), "ok"),
        (datetime(2024, 2, 29, 12, tzinfo=UTC), "2024-02-29T12:00:00+00:00"),
        (date(2024, 2, 29), "2024-02-29"),
        (time(12, 30), "12:30:00"),
        (timedelta(minutes=1, milliseconds=500), 60.5),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (PurePosixPath("/tmp/x"), "/tmp/x"),
        (Colour.RED, "red"),
        (Level.HIGH, 3),
        ((1, [2, (3,)]), [1, [2, [3]]]),
        ({"b", "a"}, ["a", "b"]),
        ({3, "a", None}, ["a", 3, None]),
        (range(3), [0, 1, 2]),
        (Point(1, frozenset({"t"})), {"x": 1, "tags": ["t"]}),
        (Model(when=date(2024, 1, 1)), {"when": "2024-01-01"}),
        (MappingProxyType({"a": 1}), {"a": 1}),
        ({None: "b", True: "c"}, {"true": "c", "null": "b"}),
        ({2: 1, 1.5: 2, (1, "x"): 3}, {"2": 1, "1.5": 2, '[1, "x"]': 3}),
        (
            {uuid.UUID(int=1): 1, "a\0": 2},
            {"00000000-0000-0000-0000-000000000001": 1, "a" + BAD: 2},
        ),
    ],
)
def test_every_common_value_has_a_form(value: object, cleaned: JSON):
    result = clean_json(value)
    assert result == cleaned
    assert type(result) is type(cleaned)


def test_no_negative_zero():
    assert math.copysign(1, clean_json(-0.0)) == 1


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


def test_depth_is_bounded():
    assert clean_json(nested(MAX_DEPTH)) == nested(MAX_DEPTH)
    for depth in (MAX_DEPTH + 1, 200, 100_000):
        with pytest.raises(UncleanValue, match="nested more than 100 deep"):
            clean_json(nested(depth))


def circular() -> dict[str, Any]:
    value: dict[str, Any] = {"items": [1]}
    value["items"].append(value)
    return value


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (circular(), r"the value contains itself, at \$\.items\[1\]"),
        ({"a": [object()]}, r"an object of type object has no form in JSON, at \$\.a\[0\]"),
        ({"a": Point}, "an object of type type has no form"),
        ({1: "a", "1": "b"}, "two keys become '1'"),
        ([10**5000], r"too many digits, at \$\[0\]"),
        ({"x" * 500: object()}, r"\$\.x{99}…\.$"),
    ],
)
def test_what_has_no_faithful_form_is_refused_in_a_sentence(value, sentence):
    with pytest.raises(UncleanValue, match=sentence):
        clean_json(value)


def test_a_value_may_occur_twice_without_being_circular():
    shared = [1]
    assert clean_json({"a": shared, "b": shared}) == {"a": [1], "b": [1]}


def as_jsonb_reads(text: str) -> object:
    """Postgres keeps numbers as decimals and spells them without an exponent."""
    return json.loads(text, parse_float=lambda digits: json.loads(f"{Decimal(digits):f}"))


scalars = (
    st.none() | st.booleans() | st.integers() | st.floats() | any_text | st.decimals() | st.uuids()
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(any_text.map(clean_text), inner)
)


@given(values)
def test_a_clean_value_survives_the_round_trip_and_a_second_cleaning(value):
    cleaned = clean_json(value)
    text = json.dumps(cleaned, allow_nan=False, ensure_ascii=False)
    assert text.encode().decode() == text
    assert as_jsonb_reads(text) == cleaned
    assert clean_json(cleaned) == cleaned
