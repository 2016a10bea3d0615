"""What goes in and out of the API: checked, and described in its schema."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from runs.events import EventType
from runs.services import OnBusy
from runs.states import Status

Id = Annotated[str, Field(json_schema_extra={"format": "uuid"})]
Moment = Annotated[
    str,
    Field(
        json_schema_extra={"format": "date-time"},
        description="ISO 8601 in UTC, always with microseconds.",
        examples=["2026-12-01T10:00:00.120000Z"],
    ),
]
AgentName = Annotated[str, Field(max_length=100, examples=["demo"])]
Title = Annotated[str, Field(max_length=200, examples=["Order 2077"])]
Text = Annotated[str, Field(examples=["Where is my order 2077?"])]
AnyObject = dict[str, Any]


class NewConversation(BaseModel):
    agent: AgentName | None = Field(None, description="Answers where a message names no other.")
    title: Title = Field("", description="Without one the first message becomes it.")


class ConversationPatch(BaseModel):
    title: Title


class NewMessage(BaseModel):
    text: Text
    on_busy: OnBusy = Field(
        OnBusy.MERGE, description="What the message does while a run of the conversation is open."
    )
    agent: AgentName | None = Field(None, description="Answers this message.")
    metadata: AnyObject = Field(default_factory=dict, description="The agent gets it too.")


class Regeneration(BaseModel):
    inputs: list[Text] | None = Field(
        None, min_length=1, max_length=100, description="Instead of the messages of the old run."
    )


class Input(BaseModel):
    """A user message of a run."""

    text: Text
    created_at: Moment


class Fault(BaseModel):
    """Why a run failed."""

    code: str = Field(examples=["timeout"])
    message: str


class Run(BaseModel):
    """One execution that answers one turn."""

    id: Id
    conversation_id: Id
    turn: int = Field(ge=1)
    agent: str
    status: Status
    attempt: int = Field(ge=0, description="0 until a worker takes it.")
    created_at: Moment
    started_at: Moment | None
    first_token_at: Moment | None
    finished_at: Moment | None
    output: str = Field(description="Filled in when the run ends.")
    error: Fault | None
    usage: AnyObject | None = Field(examples=[{"input_tokens": 21, "output_tokens": 9}])
    finish_reason: str | None = Field(examples=["stop"])
    last_seq: int | None = Field(description="Number of the last event; null before the first.")
    inputs: list[Input]
    metadata: AnyObject


class Turn(Run):
    """A run as a turn of its conversation."""

    run_id: Id


class Conversation(BaseModel):
    """A thread of turns."""

    id: Id
    title: str
    agent: str
    created_at: Moment


class ConversationPage(BaseModel):
    conversations: list[Conversation]
    next: Id | None = Field(description="The `cursor` of the next page.")


class ConversationDetail(Conversation):
    turns: list[Turn] = Field(description="In order, without those that were answered anew.")
    earlier: int | None = Field(description="The `before` of the turns before these.")
    open_run: Run | None = Field(description="The active run, else the oldest pending one.")
    merge_window_ms: int = Field(description="So long after its creation a run can be joined.")


class Sent(BaseModel):
    """Where a message went."""

    run: Run
    merged: bool = Field(description="It joined the run in progress.")
    position: int = Field(ge=0, description="Its place among the run's inputs.")
    stream_url: str = Field(examples=["/api/runs/01890000-0000-7000-8000-000000000000/stream"])


class Event(BaseModel):
    """One numbered fact in a run's log."""

    seq: int = Field(ge=0)
    type: EventType
    data: AnyObject = Field(examples=[{"text": "Hello! "}])
    created_at: Moment


class EventPage(BaseModel):
    events: list[Event]
    next: int | None = Field(description="The `after` of the next page; null if there is none yet.")
    status: Status


class Agent(BaseModel):
    name: str = Field(examples=["demo"])
    description: str


class AgentList(BaseModel):
    agents: list[Agent]
    default: str = Field(examples=["demo"])


class FieldFault(BaseModel):
    field: str = Field(description="Dotted name of the value; empty for the body as a whole.")
    message: str


class Problem(BaseModel):
    """A refusal (RFC 9457)."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "type": "about:blank",
                "title": "Unprocessable Entity",
                "status": 422,
                "detail": "the text is empty",
                "code": "invalid_text",
                "errors": [{"field": "text", "message": "the text is empty"}],
            }
        }
    )

    type: str
    title: str
    status: int
    detail: str = Field(description="For people.")
    code: str = Field(description="For programs.")
    errors: list[FieldFault] | None = None
