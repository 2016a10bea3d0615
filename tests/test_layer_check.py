"""The system check of the channel layer."""

from __future__ import annotations

import pytest
from channels_redis.core import RedisChannelLayer
from django.core.management import call_command
from django.core.management.base import SystemCheckError

from streaming.checks import layer_does_not_drop


class Derived(RedisChannelLayer):
    """A project's own version of it."""


@pytest.mark.parametrize(
    "backend", ["channels_redis.core.RedisChannelLayer", f"{__name__}.{Derived.__name__}"]
)
@pytest.mark.django_db
def test_a_layer_that_drops_silently_stops_the_start_with_the_reason(settings, backend: str):
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": backend}}
    with pytest.raises(SystemCheckError, match=r"koda_streaming\.E001") as stopped:
        call_command("check")
    assert f"{backend} drops messages silently" in str(stopped.value)


@pytest.mark.parametrize(
    "layers",
    [
        {},
        {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}},
        {"default": {"BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer"}},
        {"default": {"BACKEND": "streaming.layer.PipelinedPubSubLayer"}},
    ],
)
def test_the_others_are_welcome(settings, layers: dict[str, dict[str, str]]):
    settings.CHANNEL_LAYERS = layers
    assert layer_does_not_drop(None) == []
