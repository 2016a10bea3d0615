"""The page's words and their translations: none is missing, none is left over, none is stale."""

from __future__ import annotations

import gettext
import io
import re

from django.test import Client
from django.utils.translation import override

from koda import messages
from koda.texts import TEXTS
from koda.views import MODULES

STATIC = messages.BASE / "streaming/static/koda"


def test_every_text_of_the_page_is_translated_and_no_other():
    catalog = messages.translations()
    translated = {message.id: message.string for message in catalog if message.id}
    assert set(translated) == set(messages.texts())
    assert [text for text, chinese in translated.items() if not chinese] == []


def test_a_translation_has_the_places_of_its_text():
    for message in messages.translations():
        places = re.findall(r"\{\w+\}", str(message.id))
        assert sorted(re.findall(r"\{\w+\}", str(message.string))) == sorted(places), message.id


def contents(compiled: bytes) -> dict[str, str]:
    """What a compiled file says, without the header: that has Babel's version and the time."""
    catalog: dict[str, str] = gettext.GNUTranslations(io.BytesIO(compiled))._catalog
    return {text: translation for text, translation in catalog.items() if text}


def test_the_compiled_file_is_what_its_source_says():
    compiled = messages.compiled(messages.translations())
    assert contents(messages.PO.with_suffix(".mo").read_bytes()) == contents(compiled)


def test_the_script_names_just_the_texts_that_there_are():
    scripts = "\n".join(path.read_text() for path in STATIC.glob("*.mjs"))
    named = set(re.findall(r"\bt\(\s*'(\w+)'", scripts))
    made = {"superseded_", "tool_", "stopped_"}  # t(`tool_${status}`)
    assert named <= set(TEXTS)
    unused = [
        name
        for name in TEXTS
        if f"'{name}'" not in scripts and not any(name.startswith(start) for start in made)
    ]
    assert unused == []


def test_the_page_fetches_every_module_of_its_script_ahead():
    assert sorted(MODULES) == sorted(
        path.stem for path in STATIC.glob("*.mjs") if path.stem != "chat"
    )


def test_the_page_comes_in_the_language_that_the_browser_asks_for(db):
    for asked, language, title in (
        ("zh-CN,zh;q=0.9", "zh-hans", "新对话"),
        ("fr", "en", "New conversation"),
    ):
        page = Client().get("/", headers={"Accept-Language": asked}).content.decode()
        assert f'<html lang="{language}">' in page
        assert title in page
    with override("zh-hans"):
        assert str(TEXTS["thinking"]) == "思考中…"
