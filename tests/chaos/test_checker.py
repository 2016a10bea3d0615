"""The checker can fail: each doctored piece of evidence is caught, and named."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace

import pytest

from tests.chaos import bounds, checker, report
from tests.chaos.evidence import (
    Accepted,
    Cancelled,
    Evidence,
    Happened,
    Refusal,
    Row,
    Seen,
    StoredRun,
    Transcript,
)

EVENTS = (
    ("run_started", {"attempt": 1, "agent": "openai"}),
    ("delta", {"text": "Re p0-1: "}),
    ("delta", {"text": "w0 "}),
    ("run_completed", {"finish_reason": "stop", "usage": None}),
)


def run(id: str, *, begins: float, name: str = "p0-1", conversation: str = "c") -> StoredRun:
    log = [Row(seq, type, dict(data), begins + seq) for seq, (type, data) in enumerate(EVENTS)]
    log[1].data["text"] = f"Re {name}: "
    text = f"[{name}] words=1 pace=0"
    return StoredRun(id, conversation, 1, "done", 1, 4, f"Re {name}: w0 ", None, [text], log)


def transcript(of: StoredRun, lag: float = 0.1) -> Transcript:
    seen = [Seen(row.seq, row.type, dict(row.data), row.at + lag) for row in of.log]
    present = [(of.log[0].at - 1, of.log[-1].at + lag)]
    return Transcript(of.id, "w", seen, complete=True, present=present, connections=1)


@pytest.fixture
def sound() -> Evidence:
    """Two runs of one conversation, one after the other, each with a watcher."""
    runs = [run("r1", begins=100), run("r2", begins=110, name="p0-2")]
    return Evidence(
        transcripts=[transcript(one) for one in runs],
        accepted=[
            Accepted("p0-1", "r1", merged=False, at=99),
            Accepted("p0-2", "r2", merged=False, at=109),
        ],
        runs={one.id: one for one in runs},
    )


def test_what_is_sound_is_let_pass(sound: Evidence):
    assert checker.violations(sound) == []


Doctor = Callable[[Evidence], object]


def log_of(evidence: Evidence) -> list[Row]:
    return evidence.runs["r1"].log


def seen_by(evidence: Evidence) -> list[Seen]:
    return evidence.transcripts[0].seen


def stored_after_the_end(evidence: Evidence) -> None:
    log_of(evidence).append(Row(4, "delta", {"text": ""}, 104))
    evidence.runs["r1"].next_seq = 5


def started_twice(evidence: Evidence) -> None:
    log_of(evidence)[2] = Row(2, "run_started", {}, 102)


def answered_by_nobody(evidence: Evidence) -> None:
    evidence.accepted.append(Accepted("p0-3", "r2", merged=True, at=112))


def stored_and_not_answered(evidence: Evidence) -> None:
    evidence.accepted.append(Accepted("p0-3", "r2", merged=True, at=112))
    evidence.runs["r2"].inputs.append("[p0-3] words=1 pace=0")


def stored_twice(evidence: Evidence) -> None:
    evidence.runs["r2"].inputs.append("[p0-1] words=1 pace=0")


def failed(evidence: Evidence) -> None:
    evidence.runs["r1"].status = "failed"
    log_of(evidence)[3] = Row(3, "run_failed", {}, 103)


def broken(status: int, at: float = 100.0) -> Doctor:
    return lambda evidence: evidence.refusals.append(Refusal(at, "conversations", status, ""))


def watched(**changes: object) -> Doctor:
    def doctor(evidence: Evidence) -> None:
        evidence.transcripts[0] = replace(evidence.transcripts[0], **changes)

    return doctor


DOCTORED: dict[str, tuple[Doctor, str]] = {
    "an id is missing from the log": (lambda e: log_of(e).pop(2), "the log's numbers are"),
    "next_seq is ahead": (lambda e: setattr(e.runs["r1"], "next_seq", 5), "next_seq is 5"),
    "there is no end": (
        lambda e: setattr(e.runs["r1"], "status", "streaming"),
        "is streaming when",
    ),
    "status and end differ": (
        lambda e: setattr(e.runs["r1"], "status", "cancelled"),
        "cancelled ends with",
    ),
    "an event comes after the end": (stored_after_the_end, "comes after the end"),
    "the run failed": (failed, "the run failed"),
    "the output is another": (lambda e: setattr(e.runs["r1"], "output", "?"), "the log adds up"),
    "a watcher misses an id": (lambda e: seen_by(e).pop(2), "saw the numbers"),
    "a watcher sees an id twice": (
        lambda e: seen_by(e).insert(2, seen_by(e)[1]),
        "saw the numbers",
    ),
    "a watcher sees two in the wrong order": (
        lambda e: seen_by(e).insert(1, seen_by(e).pop(2)),
        "saw the numbers",
    ),
    "one id has two payloads": (
        lambda e: seen_by(e)[2].data.update(text="other"),
        "saw 2 as delta",
    ),
    "a watcher sees something after the end": (
        lambda e: seen_by(e).append(Seen(4, "delta", {"text": ""}, 105)),
        "saw ends at",
    ),
    "a watcher never gets to the end": (
        lambda e: (seen_by(e).pop(), watched(complete=False)(e)),
        "saw 3 of 4",
    ),
    "a watcher gives up": (watched(complete=False, problem="nothing new"), "nothing new"),
    "a watcher is told of a hole": (watched(errors=["gap"]), "was told ['gap']"),
    "a run is watched that is not stored": (lambda e: e.runs.pop("r1"), "is not stored"),
    "two runs are active at once": (
        lambda e: e.runs.update(r2=run("r2", begins=102, name="p0-2")),
        "active beside",
    ),
    "a run starts twice": (started_twice, "started 2 times"),
    "an accepted message is nowhere": (answered_by_nobody, "p0-3 is stored in []"),
    "an accepted message is not answered": (stored_and_not_answered, "p0-3 is not answered"),
    "a message is stored twice": (stored_twice, "is stored in ['r1', 'r2']"),
    "a call fails": (broken(500), "answered 500"),
    "a call is refused": (broken(409), "answered 409"),
    "a process dies by itself": (lambda e: e.deaths.append("worker-2 ended with 1"), "ended with"),
}


@pytest.mark.parametrize("what", DOCTORED)
def test_what_is_not_sound_is_caught(sound: Evidence, what: str):
    doctor, named = DOCTORED[what]
    doctor(sound)
    found = checker.violations(sound)
    assert any(named in violation for _, violation in found), found


def test_a_call_may_fail_while_postgres_is_away(sound: Evidence):
    sound.happened.append(Happened("postgres killed", "postgres", 98, 99.5))
    broken(503)(sound)
    assert checker.violations(sound) == []


# Bounds -------------------------------------------------------------------------------------


def bound(evidence: Evidence, what: str) -> bounds.Bound:
    measured = bounds.measured(evidence, lease=3, sweep=1, drain=1)
    return next(one for one in measured if what in one.what)


def test_a_late_end_is_too_long(sound: Evidence):
    assert bound(sound, "reaches its watchers").kept
    sound.transcripts[0] = transcript(sound.runs["r1"], lag=5.2)
    late = bound(sound, "reaches its watchers")
    assert not late.kept
    assert round(late.most[0], 3) == 5.2
    assert any("TOO LONG: r1" in line for line in report.page(sound, [], [late], seed=1, seconds=1))


def test_what_another_fault_disturbs_is_not_measured(sound: Evidence):
    sound.transcripts = [transcript(sound.runs["r1"], lag=5.2)]
    sound.happened.append(Happened("gateway frozen", "gateway-1", 103.5, 106))
    assert bound(sound, "reaches its watchers").samples == []


def test_a_lost_last_message_is_measured_by_itself(sound: Evidence):
    lossy = Happened("last messages lost", "messages", 102, 104)
    sound.happened.append(lossy)
    assert bound(sound, "message was lost").most == (pytest.approx(0.1), "r1 w")
    assert [which for _, which in bound(sound, "reaches its watchers").samples] == ["r2 w"]


def test_a_slow_take_over_and_a_slow_cancel_are_too_long(sound: Evidence):
    slow = deepcopy(sound)
    slow.happened.append(Happened("worker killed", "worker-2", 102.5, 103, held=("r1",)))
    assert bound(slow, "killed worker").most == (pytest.approx(0.5), "r1")
    slow.runs["r1"].log[3] = Row(3, "run_completed", {}, 109)
    assert not bound(slow, "killed worker").kept
    sound.cancels.append(Cancelled("r1", 102, 104.5))
    assert not bound(sound, "cancel").kept


def stream(lag: Callable[[float], float]) -> Evidence:
    """A run with an event every 0.1 s from 99 to 105, and how late each came."""
    log = [Row(seq, "delta", {"text": ""}, 99 + seq / 10) for seq in range(60)]
    made = StoredRun("r1", "c", 1, "streaming", 1, 60, "", None, [], log)
    watcher = transcript(made)
    watcher.complete = False
    for seen, row in zip(watcher.seen, log, strict=True):
        seen.at = row.at + lag(row.at)
    return Evidence(transcripts=[watcher], runs={"r1": made})


@pytest.mark.parametrize(("back_at", "measured"), [(101.0, 0.0), (103.0, 2.0)])
def test_live_again_is_when_events_come_at_once(back_at: float, measured: float):
    evidence = stream(lambda at: 0.05 if at >= back_at else 1.2)
    evidence.happened.append(Happened("redis killed", "redis", 99.5, 101))
    seconds, _ = bound(evidence, "Redis").most
    assert seconds == pytest.approx(measured, abs=0.15)


def test_the_first_event_after_postgres_came_back_is_measured():
    evidence = stream(lambda at: 0.05)
    evidence.runs["r1"].log[20:40] = [
        replace(row, at=row.at + 2) for row in evidence.runs["r1"].log[20:40]
    ]
    for seen in evidence.transcripts[0].seen[20:40]:
        seen.at += 2
    evidence.happened.append(Happened("postgres killed", "postgres", 100.95, 101.5))
    assert bound(evidence, "Postgres").most == (
        pytest.approx(1.55, abs=0.01),
        "postgres killed: r1",
    )
