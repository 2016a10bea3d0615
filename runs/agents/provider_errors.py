"""What a provider's error means for a run: try again, or not."""

from runs.agents.base import AgentError, PermanentError, TransientError

TRANSIENT_STATUSES = frozenset({408, 409, 429})
"""Beside 5xx."""
TRANSIENT_CODES = frozenset(
    {
        "engine_overloaded",
        "internal_server_error",
        "overloaded",
        "overloaded_error",
        "rate_limit_error",
        "rate_limit_exceeded",
        "server_error",
        "service_unavailable",
        "timeout",
        "too_many_requests",
    }
)
"""An in-stream error is permanent unless it names one of these, or a transient status."""
PERMANENT_CODES = frozenset({"billing_hard_limit_reached", "insufficient_quota"})
"""Sent with status 429, and yet no waiting will help."""


def status_error(status: int, body: object, message: str) -> AgentError:
    """For a response that is no stream. `message` is used where `body` has none."""
    names = _names(body)
    code = names[0] if names else f"http_{status}"
    text = _message(body) or message
    transient = status in TRANSIENT_STATUSES or status >= 500
    if transient and PERMANENT_CODES.isdisjoint(names):
        return TransientError(text, code=code)
    return PermanentError(text, code=code)


def in_stream_error(error: object) -> AgentError:
    """For an error that came as an event of a stream: an object, or just a text."""
    names = _names(error)
    code = names[0] if names else "provider_error"
    text = _message(error) or "The model server reported an error in the middle of its answer."
    if any(_is_transient(name) for name in names):
        return TransientError(text, code=code)
    return PermanentError(text, code=code)


def _is_transient(name: str) -> bool:
    if name.isascii() and name.isdigit():
        return int(name[:4]) in TRANSIENT_STATUSES or 500 <= int(name[:4]) <= 599
    return name.lower() in TRANSIENT_CODES


def _names(error: object) -> list[str]:
    """The code (a number with some providers) and the type, as far as given."""
    if not isinstance(error, dict):
        return []
    given = (error.get("code"), error.get("type"))
    return [str(name) for name in given if isinstance(name, str | int) and name]


def _message(error: object) -> str:
    if isinstance(error, str):
        return error
    if not isinstance(error, dict):
        return ""
    message = error.get("message") or error.get("detail") or error.get("error")
    return message if isinstance(message, str) else ""
