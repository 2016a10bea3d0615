"""Every setting of Koda, each with its unit and its reason.

The environment decides (`KODA_LEASE=10`); a Django project that embeds the apps writes
`KODA = KodaSettings()` into its settings module and may pass values there. Code reads
`conf.get()`; the pure modules take what they need as arguments.
"""

import os
from datetime import timedelta
from typing import Annotated

from django.conf import settings as django_settings
from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class ConfigError(Exception):
    """A setting has a value that cannot be meant; the message names the variable."""


class KodaSettings(BaseSettings):
    """Durations are seconds."""

    model_config = SettingsConfigDict(env_prefix="KODA_", frozen=True, extra="forbid")

    merge_window: Seconds = Field(
        30, description="A correction this soon after the question joins the run in progress."
    )
    ping_interval: Seconds = Field(
        15, description="Silence after which a stream sends a comment, so that proxies keep it."
    )
    orderer_cap: int = Field(64, ge=1, description="Events held for a hole before it is read.")
    gap_wait: Seconds = Field(2, description="How long a hole may stay before it is read.")
    flush_fragments: int = Field(40, ge=1, description="Most events of one run in one commit.")
    flush_interval: float = Field(
        0.005, ge=0, le=0.2, description="Least time between the starts of two commits."
    )
    sweep_interval: Seconds = Field(
        2, description="How often lost messages (gateway) and dead workers are looked for."
    )
    lease: Seconds = Field(30, description="A run unheard of for this long is taken over.")
    heartbeat: Seconds = Field(10, description="How often a worker renews its leases.")
    max_attempts: int = Field(3, ge=1, description="Tries of one run before it fails.")
    run_timeout: Seconds = Field(600, description="Longest life of one try.")
    idle_timeout: Seconds = Field(60, description="Longest silence of an agent.")
    drain_timeout: Seconds = Field(
        30, description="How long a worker told to stop lets its runs finish."
    )
    fragment_retention: float = Field(
        6 * 3600,
        ge=0,
        allow_inf_nan=False,
        description="How long a finished run keeps one row for each event.",
    )
    replay_cap: int = Field(1000, ge=1, description="Most events replayed one by one.")
    worker_concurrency: int = Field(20, ge=1, description="Runs that one worker drives at once.")
    agents: Annotated[dict[str, str], NoDecode] = Field(
        default_factory=dict,
        description="Comma list `name=dotted.path`, on top of the shipped agents.",
    )
    default_agent: str = Field("demo", description="Answers where nobody names an agent.")
    allow_anonymous: bool = Field(
        True, description="Visitors may chat, tied to their browser session."
    )
    max_active_runs: int = Field(200, ge=1, description="Open runs of one owner.")
    messages_per_minute: int = Field(600, ge=1, description="Messages of one owner.")
    max_text: int = Field(20_000, ge=1, description="Characters of one message.")

    @field_validator("agents", mode="before")
    @classmethod
    def _split_agents(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        agents: dict[str, str] = {}
        for pair in filter(None, map(str.strip, value.split(","))):
            name, equals, path = (part.strip() for part in pair.partition("="))
            if not (name and equals and path):
                raise ValueError("expected a comma list of name=dotted.path")
            agents[name] = path
        return agents

    @property
    def merge_window_delta(self) -> timedelta:
        return timedelta(seconds=self.merge_window)

    @property
    def fragment_retention_delta(self) -> timedelta:
        return timedelta(seconds=self.fragment_retention)

    @property
    def lease_delta(self) -> timedelta:
        return timedelta(seconds=self.lease)


def load(**defaults: object) -> KodaSettings:
    """Read the environment; `defaults` stand where it says nothing.

    Raises ConfigError with one sentence that names the variable.
    """
    given = {
        name: value for name, value in defaults.items() if f"KODA_{name.upper()}" not in os.environ
    }
    try:
        loaded = KodaSettings(**given)  # type: ignore[arg-type]
    except ValidationError as error:
        raise ConfigError(_sentence(error)) from None
    if loaded.heartbeat >= loaded.lease:
        raise ConfigError(
            f"KODA_HEARTBEAT ({loaded.heartbeat:g} s) must be shorter than "
            f"KODA_LEASE ({loaded.lease:g} s), or healthy workers lose their runs."
        )
    return loaded


def _sentence(error: ValidationError) -> str:
    first = error.errors()[0]
    name = f"KODA_{str(first['loc'][0]).upper()}"
    return f"{name}={first['input']!r} is not a valid setting: {first['msg']}."


def get() -> KodaSettings:
    """The settings in force."""
    return django_settings.KODA
