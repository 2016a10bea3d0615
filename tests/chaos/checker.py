"""The promises, checked on what was seen and stored. Pure: the same evidence, the same verdict."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from tests.chaos import model
from tests.chaos.evidence import Evidence, Happened, StoredRun, Transcript
from tests.live_client import TERMINAL

ENDS = {"done": "run_completed", "failed": "run_failed", "cancelled": "run_cancelled"}

Violation = tuple[str, str]
"""The run (or call, or process), and what is not so."""

SLACK = 1.5
"""Seconds after an outage in which calls may still fail: a pool hands out what has died."""


def violations(evidence: Evidence) -> list[Violation]:
    """Everything that a promise forbids."""
    found: list[Violation] = []
    for run in evidence.runs.values():
        found += [(run.id, what) for what in of_log(run)]
    for transcript in evidence.transcripts:
        known = evidence.runs.get(transcript.run_id)
        found += [
            (transcript.run_id, f"{transcript.watcher}: {what}")
            for what in of_transcript(transcript, known)
        ]
    found += of_conversations(evidence)
    found += of_messages(evidence)
    found += of_answers(evidence)
    found += [("process", death) for death in evidence.deaths]
    return found


def of_log(run: StoredRun) -> Iterator[str]:
    """Contiguous, one end, the last; status and output agree with it."""
    seqs = [row.seq for row in run.log]
    if seqs != list(range(run.next_seq)):
        yield f"the log's numbers are {_few(seqs)}, next_seq is {run.next_seq}"
    ends = [row.type for row in run.log if row.type in TERMINAL]
    if run.status not in ENDS:
        yield f"the run is {run.status} when all is over"
    elif ends != [ENDS[run.status]]:
        yield f"a run that is {run.status} ends with {ends}"
    elif run.log[-1].type not in TERMINAL:
        yield f"{run.log[-1].type} comes after the end"
    if run.status == "failed":
        yield f"the run failed: {run.error}"
    if run.output != (text := _text(run)):
        yield f"the output is {run.output!r}, the log adds up to {text!r}"


def _text(run: StoredRun) -> str:
    said = ""
    for row in run.log:
        if row.type == "delta":
            said += row.data["text"]
        elif row.type == "run_restarted":
            said = ""
    return said


def of_transcript(transcript: Transcript, run: StoredRun | None) -> Iterator[str]:
    """Every event once, in order, as it is stored, to the end."""
    if run is None:
        yield "watched a run that is not stored"
        return
    if transcript.problem:
        yield transcript.problem
    ids = [seen.id for seen in transcript.seen]
    if ids != list(range(len(ids))):
        yield f"saw the numbers {_few(ids)}"
    rows = {row.seq: (row.type, row.data) for row in run.log}
    for seen in transcript.seen:
        if rows.get(seen.id) != (seen.type, seen.data):
            yield f"saw {seen.id} as {seen.type} {seen.data}, stored is {rows.get(seen.id)}"
            break
    ends = [seen.id for seen in transcript.seen if seen.type in TERMINAL]
    if len(ends) > 1 or (ends and ends[0] != ids[-1]):
        yield f"saw ends at {ends} of {ids[-1]}"
    if not transcript.problem and (not transcript.complete or len(ids) != run.next_seq):
        yield f"saw {len(ids)} of {run.next_seq} events"
    if broken := {"gap", "internal", "gone"} & set(transcript.errors):
        yield f"was told {sorted(broken)}"


def of_conversations(evidence: Evidence) -> list[Violation]:
    """Never two active runs: by their logs, each ends before the next one starts."""
    found: list[Violation] = []
    by_conversation = defaultdict(list)
    for run in evidence.runs.values():
        started = [row.at for row in run.log if row.type == "run_started"]
        if len(started) > 1:
            found.append((run.id, f"started {len(started)} times"))
        ended = [row.at for row in run.log if row.type in TERMINAL]
        if started:
            end = ended[0] if ended else float("inf")
            by_conversation[run.conversation].append((started[0], end, run.id))
    for runs in by_conversation.values():
        found += [
            (later[2], f"was active beside {earlier[2]}")
            for earlier, later in pairwise(sorted(runs))
            if later[0] < earlier[1]
        ]
    return found


def of_messages(evidence: Evidence) -> list[Violation]:
    """Every accepted message is stored once, in the run that was named, and that run answers it."""
    found: list[Violation] = []
    where = defaultdict(list)
    for run in evidence.runs.values():
        for text in run.inputs:
            for name in model.NAME.findall(text):
                where[name].append(run.id)
    for message in evidence.accepted:
        if where[message.name] != [message.run_id]:
            what = f"{message.name} is stored in {where[message.name]}"
            found.append((message.run_id, what))
            continue
        run = evidence.runs[message.run_id]
        if run.status == "done" and message.name not in model.names_in(run.output):
            found.append((run.id, f"{message.name} is not answered by {run.output!r}"))
    return found


def of_answers(evidence: Evidence) -> list[Violation]:
    """No call fails on our side, but while Postgres is away."""
    away = [one for one in evidence.happened if one.kind.startswith("postgres")]
    return [
        (refusal.call, f"answered {refusal.status}: {refusal.body[:200]}")
        for refusal in evidence.refusals
        if refusal.status < 500 or not _within(refusal.at, away)
    ]


def _within(at: float, outages: list[Happened]) -> bool:
    return any(one.began - 0.1 <= at <= one.ended + SLACK for one in outages)


def _few(numbers: list[int]) -> str:
    """Where a list of numbers is not 0, 1, 2 …"""
    for place, number in enumerate(numbers):
        if place != number:
            return f"… {numbers[max(0, place - 2) : place + 3]} … (at place {place})"
    return f"0 to {len(numbers) - 1}"
