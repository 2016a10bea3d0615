"""What can go wrong that a caller can do something about: one class each."""


class KodaError(Exception):
    """Base of all errors of this project."""


class WriteRefused(KodaError):
    """The guarded write hit no row: the run has moved on without this writer."""


class IllegalTransition(WriteRefused):
    """The transition table has no such move."""


class Superseded(WriteRefused):
    """Another attempt owns the run now."""


class AlreadyFinished(WriteRefused):
    """The run is over; nothing may follow its terminal event."""


class InputGrew(WriteRefused):
    """A correction joined the run before it could end: answer that too."""


class Gone(WriteRefused):
    """The run was deleted."""


class Unwritable(WriteRefused):
    """The database does not take this event, however often it is tried."""


class Refused(KodaError):
    """A request that cannot be served as it is.

    `code` says why in one word; `field` names the value at fault, where there is one.
    """

    code = "refused"
    field: str | None = None


class ConversationBusy(Refused):
    """A run of this conversation is still open."""

    code = "conversation_busy"


class NotRegenerable(Refused):
    """Only the last turn of a conversation can be answered anew, and only once it is over."""

    code = "not_regenerable"


class TooManyRuns(Refused):
    """The owner has as many open runs as one may have."""

    code = "too_many_runs"


class NotFound(Refused):
    """No such object, or not yours: the two look the same."""

    code = "not_found"


class KeyReused(Refused):
    """This idempotency key came with another body before."""

    code = "idempotency_key_reused"


class InvalidText(Refused):
    """The text is empty or too long."""

    code = "invalid_text"
    field = "text"


class InvalidMetadata(Refused):
    """The metadata cannot be stored as JSON."""

    code = "invalid_metadata"
    field = "metadata"


class UnknownAgent(Refused):
    """No agent of this name is configured."""

    code = "unknown_agent"
    field = "agent"
