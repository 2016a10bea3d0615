"""A worker reduced to its writes: each step is one call of the real guarded methods.

Its answer is the inputs that it was given, so that a finished run shows what its worker had read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from uuid import UUID

from runs import events
from runs.errors import InputGrew
from runs.models import Run, RunInput
from runs.states import Status
from runs.writes import Append, Claimed, Ending
from tests.fakes import LEASE


@dataclass(frozen=True, slots=True)
class Hand:
    """What a worker believes of the run that it holds, rightly or not any more."""

    worker: str
    run_id: UUID
    attempt: int
    seq: int
    streaming: bool
    inputs: tuple[str, ...] | None = None
    said: str = ""
    voids: bool = False
    """What was said has to be voided before the answer can go on."""
    over: bool = False
    """It has ended the run, or a write was refused: it lets go."""


def take(worker: str) -> Hand | None:
    """Claim a pending run, or take over one whose lease is over."""
    claimed = Run.objects.claim(worker=worker, lease=LEASE)
    if claimed is None:
        expired = Run.objects.expired().values_list("pk", flat=True).first()
        if expired is not None:
            claimed = Run.objects.take_over(expired, worker=worker, lease=LEASE)
    return None if claimed is None else held(worker, claimed)


def held(worker: str, claimed: Claimed) -> Hand:
    run = claimed.run
    return Hand(worker, run.pk, run.attempt, run.next_seq, run.status == Status.STREAMING)


def load(hand: Hand) -> Hand:
    """Read the inputs, as after every claim and before every rerun."""
    texts = RunInput.objects.filter(run=hand.run_id).values_list("text", flat=True)
    return replace(hand, inputs=tuple(texts))


def say(hand: Hand) -> Hand:
    """Void what has to be voided, and write the answer."""
    text = answer(hand.inputs or ())
    new = [events.delta(text)]
    if hand.voids:
        inputs = list(hand.inputs or ())
        voided = events.run_restarted(reason="merged", attempt=hand.attempt, inputs=inputs)
        new = [voided, *new]
    after = replace(hand, said=text, voids=False, streaming=True)
    return _write(hand, new, after, to=None if hand.streaming else Status.STREAMING)


def end(hand: Hand, *, to: Status = Status.DONE) -> Hand:
    """Write the end; if an input came first, the answer has to be given anew."""
    if to == Status.DONE:
        event = events.run_completed(finish_reason="stop", usage=None)
    else:
        event = events.run_failed(code="broken", message="It broke.")
    ending = Ending(output=hand.said, finish_reason="stop")
    consumed = len(hand.inputs or ())
    after = replace(hand, over=True)
    return _write(hand, [event], after, to=to, ending=ending, consumed=consumed)


def _write(hand: Hand, new: list[events.Event], after: Hand, **more: object) -> Hand:
    entry = Append(hand.run_id, hand.attempt, hand.worker, hand.seq, new, **more)  # type: ignore[arg-type]
    [refused] = Run.objects.append([entry], lease=LEASE)
    if refused is None:
        return replace(after, seq=hand.seq + len(new))
    if isinstance(refused, InputGrew):
        return replace(hand, inputs=None, voids=True)
    return replace(hand, over=True)


def answer(inputs: tuple[str, ...]) -> str:
    """What a run with these inputs says."""
    return f"to {', '.join(inputs)}"


def finish_everything(worker: str = "last") -> None:
    """One healthy worker after all the others are dead."""
    while hand := take(worker):
        while not hand.over:
            hand = end(say(load(hand)))
