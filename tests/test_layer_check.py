"""The system check of the channel layer."""

from __future__ import annotations

import pytest
from channels_redis.core import RedisChannelLayer
from django.core.checks import Error, run_checks
from django.core.management import call_command
from django.core.management.base import SystemCheckError


class Derived(RedisChannelLayer):
    """A project's own version of it."""


def refusals() -> list[str]:
    found = run_checks()
    return [check.msg for check in found if check.id == "koda_streaming.E001"]


@pytest.mark.parametrize(
    "backend", ["channels_redis.core.RedisChannelLayer", f"{__name__}.{Derived.__name__}"]
)
def test_a_layer_that_drops_silently_stops_the_start_with_the_reason(settings, backend: str):
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": backend}}
    [message] = refusals()
    assert backend in message
    assert "drops messages silently" in message
    with pytest.raises(SystemCheckError, match=r"koda_streaming\.E001"):
        call_command("check")


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
    assert refusals() == []
    assert not [check for check in run_checks() if isinstance(check, Error)]
