"""docs/reliability.md names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "reliability.md"


def test_every_test_that_is_named_exists():
    named = re.findall(r"`(\w+)::(\w+)`", PAGE.read_text(encoding="utf-8"))
    named.remove(("file", "name"))  # the page's word for how it names them
    assert len(named) > 40
    texts = {
        path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")
    }
    missing = [
        f"{file}::{name}"
        for file, name in named
        if f"def test_{name}(" not in texts.get(f"test_{file}", "")
    ]
    assert missing == []
