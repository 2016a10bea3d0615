"""System checks: what is wrong with the settings before anything starts."""

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.core.checks import CheckMessage, Error, register

from runs import conf
from runs.agents.registry import agent_paths


@register
def default_agent_exists(
    app_configs: Sequence[AppConfig] | None,
    **kwargs: Any,  # noqa: ANN401
) -> list[CheckMessage]:
    """Whoever names no agent must get one that is there."""
    settings = conf.get()
    known = agent_paths(settings.agents)
    if settings.default_agent in known:
        return []
    message = f"KODA_DEFAULT_AGENT={settings.default_agent!r}: no agent has this name."
    return [Error(message, hint=f"There are: {', '.join(known)}.", id="koda_runs.E001")]
