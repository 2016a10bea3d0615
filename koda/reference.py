"""The table of settings for docs/operations.md: `python -m koda.reference` writes it."""

import sys
from typing import NamedTuple

from pydantic.fields import FieldInfo

from runs.conf import KodaSettings


class Variable(NamedTuple):
    name: str
    default: str
    meaning: str


ENVIRONMENT = (
    Variable("DATABASE_URL", "`db.sqlite3` here", "`postgres://…` or `sqlite:///…`."),
    Variable("REDIS_URL", "none", "`redis://`, `rediss://` or `unix://`. Without: one process."),
    Variable(
        "DJANGO_SECRET_KEY",
        "made once, in `.secret_key`",
        "Signs the sessions. The same for all processes of a site.",
    ),
    Variable("DJANGO_ALLOWED_HOSTS", "loopback names", "Comma list of the names served."),
    Variable(
        "DJANGO_CSRF_TRUSTED_ORIGINS",
        "none",
        "Comma list of origins (`https://chat.example.com`) whose pages may post with the site's "
        "cookies, where a proxy hides the site's own from Django.",
    ),
    Variable(
        "KODA_CORS_ORIGINS",
        "none",
        "Comma list of origins whose pages may call the API, with a token.",
    ),
    Variable("DJANGO_DEBUG", "off", "Django's debug pages. Never where others can reach them."),
    Variable(
        "DJANGO_TLS",
        "off",
        "The site is reached over https, through a proxy that sets `X-Forwarded-Proto`: secure "
        "cookies, HSTS, plain HTTP is sent on.",
    ),
    Variable("KODA_OPENAI_MODEL", "none", "The model of the `openai` agent, which requires it."),
    Variable("KODA_SYSTEM_PROMPT", "none", "What that model is told first."),
    Variable("OPENAI_API_KEY", "none", "Its key. A server on a local address may go without."),
    Variable("OPENAI_BASE_URL", "OpenAI's own", "Its API's address, often ending in `/v1`."),
    Variable("KODA_TOKEN", "none", "The API token of `manage.py chat --url`."),
)

SPECIAL_DEFAULTS = {"allow_anonymous": "on without `REDIS_URL`, else off"}


def variables() -> list[Variable]:
    """Every variable that Koda reads."""
    ours = [
        Variable(f"KODA_{name.upper()}", _default(name, field), field.description or "")
        for name, field in KodaSettings.model_fields.items()
    ]
    return [*ENVIRONMENT, *ours]


def settings_table() -> str:
    """In Markdown."""
    rows = [f"| `{name}` | {default} | {meaning} |" for name, default, meaning in variables()]
    return "\n".join(["| variable | default | meaning |", "|---|---|---|", *rows])


def _default(name: str, field: FieldInfo) -> str:
    if name in SPECIAL_DEFAULTS:
        return SPECIAL_DEFAULTS[name]
    default = field.get_default(call_default_factory=True)
    if isinstance(default, bool):
        return "on" if default else "off"
    if not isinstance(default, int | float):
        return f"`{default}`" if default else "none"
    unit = " s" if field.annotation is float else ""
    limits = [f", {limit.le:g}{unit} at most" for limit in field.metadata if hasattr(limit, "le")]
    return f"{default:g}{unit}{''.join(limits)}"


if __name__ == "__main__":
    sys.stdout.write(f"{settings_table()}\n")
