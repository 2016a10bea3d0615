"""Fixtures that many tests share."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import pytest
from django.core.cache import cache
from django.test import Client

from runs import ports
from runs.conf import KodaSettings
from runs.models import Conversation
from tests.fakes import RecordingPort

Change = Callable[..., KodaSettings]


@pytest.fixture
def conversation(db: None) -> Conversation:
    """A visitor's conversation without turns."""
    return Conversation.objects.create(visitor_key="visitor")


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> RecordingPort:
    """What the services told the world, instead of a channel layer."""
    recording = RecordingPort()
    monkeypatch.setattr(ports, "port", lambda: recording)
    return recording


@pytest.fixture
def koda(settings: object) -> Change:
    """Change settings for one test: `koda(lease=1)`."""

    def change(**values: object) -> KodaSettings:
        changed: KodaSettings = settings.KODA.model_copy(update=values)
        settings.KODA = changed
        return changed

    return change


@pytest.fixture
def visitors(koda: Change) -> None:
    """Visitors are admitted, with services too."""
    koda(allow_anonymous=True)


@pytest.fixture
def quiet() -> Iterator[None]:
    """For tests of thousands of steps, each of which would log its line."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture
def admin(admin_client: Client) -> Client:
    """A superuser's browser."""
    return admin_client


@pytest.fixture(autouse=True)
def _empty_cache() -> Iterator[None]:
    yield
    cache.clear()
