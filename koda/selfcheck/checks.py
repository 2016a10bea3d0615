"""Checks 2 to 6, over HTTP. Each is a function that returns its evidence or raises."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.db.models.functions import Now

from koda.selfcheck.client import CheckFailed, Received, Visitor
from koda.selfcheck.moves import illegal_moves
from runs.models import Run

QUESTION = "Where is my order 2077?"
CORRECTION = "Sorry, I need a different size."
WORD = "exchange"
"""Neither message has it: only an answer to both of them does."""


@dataclass(frozen=True, slots=True)
class Stage:
    """What the checks share. They run at the same time and disturb one another nowhere."""

    visitor: Visitor
    conversation: UUID
    run: UUID
    """Answers QUESTION in that conversation."""
    worker_log: Callable[[], str]


Check = Callable[[Stage], str]


def ensure(holds: object, otherwise: str) -> None:
    """Raise CheckFailed unless it holds."""
    if not holds:
        raise CheckFailed(otherwise)


def first_fault(ids: Sequence[int], expected: Sequence[int]) -> str:
    """Where two lists of numbers part."""
    for place, (got, wanted) in enumerate(zip(ids, expected, strict=False)):
        if got != wanted:
            return f"at place {place} came {got} instead of {wanted}"
    return f"{len(ids)} came instead of {len(expected)}"


def ensure_ids(ids: Iterable[int], expected: range, who: str) -> None:
    found = list(ids)
    ensure(found == list(expected), f"{who}: {first_fault(found, expected)}")


def reruns_logged(log: str, run: UUID) -> list[int]:
    """The numbers that the worker says a rerun of this run continued from."""
    about = "\n".join(line for line in log.splitlines() if str(run) in line)
    found = re.findall(r"rerunning with merged input, continuing from seq (\d+)", about)
    return [int(number) for number in found]


def illegal_moves_refused(stage: Stage) -> str:
    return illegal_moves()


def order_restored(stage: Stage) -> str:
    """The line as it arrives, against how the layer sent it."""
    received = list(stage.visitor.stream(stage.run))
    run = stage.visitor.run(stage.run)
    ids = [event.id for event in received]
    ensure_ids(ids[:12], range(12), "the first twelve ids")
    ensure_ids(ids, range(run["last_seq"] + 1), "the ids")
    text = "".join(event.data["text"] for event in received if event.type == "delta")
    ensure(text == run["output"], f"the pieces make {text!r}, the answer is {run['output']!r}")
    ensure(re.fullmatch(r"[A-Z]\S*( \S+)*[.!?)]", text), f"not a sentence: {text!r}")
    lines = re.findall(rf"run {stage.run}: sent ([\d ]+)", stage.worker_log())
    sent = [int(number) for line in lines for number in line.split()]
    late = sum(1 for place, number in enumerate(sent) if number < max(sent[: place + 1]))
    lost, again = len(set(ids) - set(sent)), len(sent) - len(set(sent))
    ensure(late and lost and again, f"too little disorder for a proof: the layer sent {sent}")
    return (
        f"ids 0…11 and on to {ids[-1]}, and “{' '.join(text.split()[:8])}…” to the last word, "
        f"though the layer sent {late} events late, {again} again and {lost} never"
    )


def every_watcher_served(stage: Stage) -> str:
    """What two watchers got, against the log. Their order is the other check's business."""

    def watch(_: int) -> list[Received]:
        return sorted(stage.visitor.stream(stage.run), key=lambda event: event.id)

    with ThreadPoolExecutor(2) as watchers:
        transcripts = list(watchers.map(watch, range(2)))
    log = stage.visitor.log(stage.run)
    for number, transcript in enumerate(transcripts, 1):
        ensure_ids((e.id for e in transcript), range(len(log)), f"watcher {number}")
        ensure(transcript == log, f"watcher {number} was told what the log does not say")
    return f"both got all {len(log)} events, each equal to the log"


def resumed(stage: Stage) -> str:
    """What came before the cut and after it, against the log."""
    kept: set[int] = set()
    with closing(stage.visitor.stream(stage.run)) as events:
        for event in events:
            kept.add(event.id)
            if kept.issuperset(range(6)):
                break
        else:
            raise CheckFailed(f"the stream ended after {sorted(kept)}")
    at = stage.visitor.run_when(stage.run, lambda run: run["last_seq"] >= 8, "has nine events")
    rest = list(stage.visitor.stream(stage.run, last_id=5))
    log = stage.visitor.log(stage.run)
    ensure(rest and rest[0].id == 6, f"cut after id 5, resumed with {rest[:1]}")
    ensure_ids(sorted(e.id for e in rest), range(6, len(log)), "after the cut")
    ensure(sorted(rest, key=lambda e: e.id) == log[6:], "the rest is not what the log says")
    return (
        f"cut after id 5, resumed with 6 while the log reached {at['last_seq']}, "
        f"then up to {log[-1].id} each once"
    )


def correction_merged(stage: Stage) -> str:
    """A second message within the window: same run, one log, one answer to both."""
    visitor = stage.visitor
    conversation = visitor.converse()
    first = visitor.say(conversation, QUESTION)
    with ThreadPoolExecutor(1) as watcher:
        watching = watcher.submit(lambda: list(visitor.stream(first.run_id)))
        visitor.run_when(first.run_id, lambda run: run["status"] == "streaming", "streams")
        second = visitor.say(conversation, CORRECTION)
        ensure(second.merged and second.status == 200, f"the second message: {second}")
        ensure(second.run_id == first.run_id, "merged, but into another run")
        received = sorted(watching.result(), key=lambda event: event.id)
    run = visitor.run(first.run_id)
    ensure_ids((e.id for e in received), range(run["last_seq"] + 1), "the ids")
    ensure(WORD in run["output"], f"no {WORD} in {run['output']!r}")
    plain = visitor.run_when(stage.run, lambda run: run["status"] == "done", "is done")
    ensure(WORD not in plain["output"], f"{WORD} without a correction: {plain['output']!r}")
    restarts = [event.id for event in received if event.type == "run_restarted"]
    logged = reruns_logged(stage.worker_log(), first.run_id)
    ensure(len(restarts) == len(logged) == 1, f"restarts {restarts}, logged {logged}")
    [restart], [number] = restarts, logged
    # A tool that the rerun interrupts is closed first, under the number that the log names.
    closing_tools = all(event.type == "tool_failed" for event in received[number:restart])
    ensure(number <= restart and closing_tools, f"restart at {restart}, logged {number}")
    return (
        f"merged=true, same run, “{WORD}” in its answer, ids 0…{received[-1].id} without a hole; "
        f"the worker logged “continuing from seq {number}”"
    )


def too_late_to_merge(stage: Stage) -> str:
    """Beyond the window, and after the end, a message is a new turn."""
    visitor = stage.visitor
    conversation = visitor.converse()
    window = visitor.conversation(conversation)["merge_window_ms"] / 1000
    old = visitor.say(conversation, QUESTION)
    visitor.run_when(old.run_id, lambda run: run["status"] == "streaming", "streams")
    moved = Run.objects.filter(pk=old.run_id).update(created_at=Now() - timedelta(seconds=window))
    ensure(moved == 1, "the run is not in the database that the gateway uses")
    beyond = visitor.say(conversation, CORRECTION)
    still = visitor.run(old.run_id)["status"]
    ensure(still == "streaming", f"too slow for a proof: the run was {still} already")
    ensure(beyond.status == 201 and not beyond.merged, f"beyond {window:g} s: {beyond}")
    ensure(beyond.run_id != old.run_id, f"no new run beyond {window:g} s")
    visitor.run_when(stage.run, lambda run: run["status"] == "done", "is done")
    after = visitor.say(stage.conversation, CORRECTION)
    ensure(after.status == 201 and not after.merged, f"after done: {after}")
    ensure(after.run_id != stage.run, "no new run after done")
    return f"a new run {window:g} s after the question, though it still streamed; one after done"


CHECKS: Sequence[tuple[str, Check]] = (
    ("illegal moves are refused", illegal_moves_refused),
    ("order is restored", order_restored),
    ("every watcher gets everything", every_watcher_served),
    ("a cut connection resumes", resumed),
    ("a correction joins the answer", correction_merged),
    ("too late for that, it starts another", too_late_to_merge),
)
