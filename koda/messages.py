"""Collects the page's words and compiles their translations: `python -m koda.messages`.

Done by hand when a text was added, with Babel, which needs none of gettext's programs; what it
writes is committed, so that nobody who installs Koda needs it.
"""

import io
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from django.utils.translation.template import templatize

BASE = Path(__file__).resolve().parent.parent
PYTHON = ("koda/texts.py", "koda/views.py")
TEMPLATES = ("templates/koda/chat.html",)
PO = BASE / "koda/locale/zh_Hans/LC_MESSAGES/django.po"
HEADER = """\
# The page in simplified Chinese. Written by `python -m koda.messages`.
msgid ""
msgstr ""
"Language: zh_Hans\\n"
"Plural-Forms: nplurals=1; plural=0;\\n"
"MIME-Version: 1.0\\n"
"Content-Type: text/plain; charset=utf-8\\n"
"Content-Transfer-Encoding: 8bit\\n"

"""
KEYWORDS = {"_": None, "gettext": None}


def texts() -> dict[str, str]:
    """All texts of the page, each with the file that it is in."""
    sources = {path: (BASE / path).read_text() for path in PYTHON}
    sources |= {path: templatize((BASE / path).read_text()) for path in TEMPLATES}
    return {
        str(text): path
        for path, source in sources.items()
        for _line, text, _comments, _context in extract(
            "python", io.BytesIO(source.encode()), keywords=KEYWORDS
        )
    }


def translations() -> Catalog:
    """What the file of translations has."""
    with PO.open("rb") as file:
        return read_po(file, locale="zh_Hans")


def compiled(catalog: Catalog) -> bytes:
    """The catalog as Django loads it."""
    file = io.BytesIO()
    write_mo(file, catalog)
    return file.getvalue()


def update() -> None:
    """Bring both files up to date. New texts are there without a translation."""
    known = translations()
    catalog = Catalog(locale="zh_Hans", charset="utf-8", fuzzy=False)
    for text, path in texts().items():
        before = known.get(text)
        catalog.add(text, before.string if before else "", locations=[(path, None)])
    with PO.open("wb") as file:
        file.write(HEADER.encode())
        write_po(file, catalog, width=100, include_lineno=False, omit_header=True)
    PO.with_suffix(".mo").write_bytes(compiled(translations()))


if __name__ == "__main__":
    update()
