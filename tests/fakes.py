"""The ends of the system that tests replace: the port to the channel layer, and short cuts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from uuid import UUID

from runs import events
from runs.events import Event, StoredEvent
from runs.models import Conversation, Message, Run, RunInput
from runs.states import TERMINAL, Status
from runs.writes import Append, Ending

LEASE = timedelta(seconds=30)


class RecordingPort:
    """Remembers every nudge."""

    local = True

    def __init__(self) -> None:
        self.published: list[tuple[UUID, StoredEvent]] = []
        self.deleted: list[UUID] = []
        self.nudges = 0

    async def publish(self, batch: Mapping[UUID, Sequence[StoredEvent]]) -> None:
        self.publish_soon(batch)

    def publish_soon(self, batch: Mapping[UUID, Sequence[StoredEvent]]) -> None:
        for run_id, stored in batch.items():
            self.published += [(run_id, event) for event in stored]

    def deleted_soon(self, run_id: UUID) -> None:
        self.deleted.append(run_id)

    def nudge_soon(self) -> None:
        self.nudges += 1

    async def listen(self, on_nudge: Callable[[], None]) -> None:
        on_nudge()


def pending_run(conversation: Conversation, *texts: str, agent: str = "demo") -> Run:
    """A pending run as `submit` leaves it, with these inputs."""
    given = texts or ("hello",)
    last = conversation.runs.order_by("-turn").first()
    run = Run.objects.create(
        conversation=conversation,
        turn=last.turn + 1 if last else 1,
        agent=agent,
        input_count=len(given),
    )
    for position, text in enumerate(given):
        RunInput.objects.create(run=run, conversation=conversation, position=position, text=text)
    run.refresh_from_db()
    return run


def run_in(conversation: Conversation, status: Status, *, worker: str = "w1") -> Run:
    """A run brought to `status` through the guarded writes, one legal move after the other."""
    run = pending_run(conversation)
    if status == Status.PENDING:
        return run
    claimed = Run.objects.claim(worker=worker, lease=LEASE)
    assert claimed is not None
    if status == Status.STREAMING:
        write(run, events.delta("so far "), to=Status.STREAMING)
    elif status == Status.DONE:
        finish(run)
    elif status == Status.FAILED:
        Run.objects.fail(run.pk, code="broken", message="It broke.")
    elif status == Status.CANCELLED:
        Run.objects.cancel(run.pk, reason="user")
    run.refresh_from_db()
    assert run.status == status
    return run


def entry(run: Run, *new: Event, **changes: object) -> Append:
    """An Append that fits the row as it is now, but for `changes`."""
    row = Run.objects.get(pk=run.pk)
    fitting: dict[str, object] = {
        "run_id": row.pk,
        "attempt": row.attempt,
        "worker": row.claimed_by or "w1",
        "seq": row.next_seq,
        "events": list(new),
    }
    return Append(**{**fitting, **changes})  # type: ignore[arg-type]


def write(run: Run, *new: Event, **changes: object) -> object:
    """Append to one run; the refusal, or None."""
    [answer] = Run.objects.append([entry(run, *new, **changes)], lease=LEASE)
    return answer


def finish(run: Run, *new: Event, to: Status = Status.DONE, **changes: object) -> object:
    """Append the end of a run; the refusal, or None."""
    end = events.run_completed(finish_reason="stop", usage=None)
    ending = Ending(output="all of it", finish_reason="stop")
    return write(run, *new, end, to=to, ending=ending, **changes)


def log(run: Run) -> list[StoredEvent]:
    return Message.objects.all().log(run.pk)


def types(run: Run) -> list[str]:
    """What the events of its log are, in order."""
    return [str(event.type) for event in log(run)]


def assert_sound(run: Run) -> None:
    """What must hold for every run at any time: log, counter and status agree."""
    row = Run.objects.get(pk=run.pk)
    stored = log(row)
    assert [event.seq for event in stored] == list(range(row.next_seq))
    ends = [event.seq for event in stored if event.terminal]
    expected = [row.next_seq - 1] if row.status in TERMINAL else []
    assert ends == expected
    assert (row.finished_at is not None) == (row.status in TERMINAL)
