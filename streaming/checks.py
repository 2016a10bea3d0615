"""System checks: a channel layer that would lose what it is given."""

from collections.abc import Sequence
from typing import Any

from channels_redis.core import RedisChannelLayer
from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, register
from django.utils.module_loading import import_string


@register
def layer_does_not_drop(
    app_configs: Sequence[AppConfig] | None,
    **kwargs: Any,  # noqa: ANN401
) -> list[CheckMessage]:
    """The core Redis layer keeps 100 messages for a process, and drops the rest without a word."""
    backend = getattr(settings, "CHANNEL_LAYERS", {}).get("default", {}).get("BACKEND")
    if backend is None or not issubclass(import_string(backend), RedisChannelLayer):
        return []
    message = (
        f"CHANNEL_LAYERS: {backend} drops messages silently when answers are written quickly: "
        "a third to a half of them with 200 runs. Readers would see text late and in lumps."
    )
    hint = "Use streaming.layer.PipelinedPubSubLayer, with the same hosts."
    return [Error(message, hint=hint, id="koda_streaming.E001")]
