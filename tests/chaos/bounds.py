"""How long things took, and how long they may take. Pure.

Only what no other fault disturbed is measured: two faults at once may take longer than either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from tests.chaos.evidence import Evidence, Happened, Transcript
from tests.chaos.plan import KINDS
from tests.live_client import TERMINAL

Sample = tuple[float, str]
"""Seconds, and what took so long."""

LIVE = 0.5
"""An event that arrives so many seconds after its commit came live, not by the sweep."""

STRETCH = 1.0
"""Seconds over which nearly all events have to come live."""


@dataclass(frozen=True, slots=True)
class Bound:
    what: str
    limit: float
    samples: list[Sample]

    @property
    def most(self) -> Sample | None:
        return max(self.samples, default=None)

    @property
    def kept(self) -> bool:
        return self.most is None or self.most[0] <= self.limit


def measured(evidence: Evidence, *, lease: float, sweep: float, drain: float) -> list[Bound]:
    """What the contract bounds, as it was measured."""
    rows: list[tuple[str, float, Measure]] = [
        ("the last event of a run reaches its watchers", 5.0, last_events),
        ("… although its message was lost", 5.0, lost_tails),
        ("a killed worker's run goes on", lease + sweep + 2.0, taken_over),
        ("a cancel closes the model's connection", 2.0, cancels),
        ("a gateway told to stop exits", 10.0, exits),
        ("a worker told to stop exits", drain + 10.0, worker_exits),
        ("Redis is back, and events come live", 5.0, live_again),
        ("Postgres is back, and runs go on", 5.0, going_on_again),
    ]
    return [Bound(what, limit, list(of(evidence, limit))) for what, limit, of in rows]


Measure = Callable[[Evidence, float], Iterator[Sample]]
"""The samples of one bound; beyond its limit nothing else matters."""


def last_events(evidence: Evidence, limit: float) -> Iterator[Sample]:
    for transcript, ended, received in _ends(evidence):
        if _calm(evidence, ended, min(received, ended + limit)):
            yield received - ended, f"{transcript.run_id} {transcript.watcher}"


def lost_tails(evidence: Evidence, limit: float) -> Iterator[Sample]:
    lossy = _of_kind(evidence, "last messages lost")
    for transcript, ended, received in _ends(evidence):
        lost = any(one.began <= ended <= one.ended for one in lossy)
        if lost and _calm(evidence, ended, min(received, ended + limit), but=lossy):
            yield received - ended, f"{transcript.run_id} {transcript.watcher}"


def _ends(evidence: Evidence) -> Iterator[tuple[Transcript, float, float]]:
    """Watchers that were there at the end of their run: when it ended, and when they knew."""
    for transcript in evidence.transcripts:
        run = evidence.runs.get(transcript.run_id)
        if transcript.complete and run and run.log and run.log[-1].type in TERMINAL:
            ended = run.log[-1].at
            if transcript.there(ended):
                yield transcript, ended, transcript.seen[-1].at


def taken_over(evidence: Evidence, limit: float) -> Iterator[Sample]:
    for kill in _of_kind(evidence, "worker killed"):
        for run_id in kill.held:
            went_on = next((at for at in _stored(evidence, run_id) if at > kill.began), None)
            if went_on and _calm(
                evidence, kill.began, min(went_on, kill.began + limit), but=[kill]
            ):
                yield went_on - kill.began, run_id


def _stored(evidence: Evidence, run_id: str) -> list[float]:
    run = evidence.runs.get(run_id)
    return [row.at for row in run.log] if run else []


def cancels(evidence: Evidence, limit: float) -> Iterator[Sample]:
    for cancel in evidence.cancels:
        if _calm(evidence, cancel.at, min(cancel.closed, cancel.at + limit)):
            yield cancel.closed - cancel.at, cancel.run_id


def exits(evidence: Evidence, limit: float) -> Iterator[Sample]:
    for stop in _of_kind(evidence, "gateway stopped"):
        yield float(stop.note), stop.target


def worker_exits(evidence: Evidence, limit: float) -> Iterator[Sample]:
    for stop in _of_kind(evidence, "worker stopped"):
        if _calm(evidence, stop.began, stop.began + min(limit, float(stop.note)), but=[stop]):
            yield float(stop.note), stop.target


def live_again(evidence: Evidence, limit: float) -> Iterator[Sample]:
    """By watchers of runs that were under way when Redis came back."""
    for fault in _of_kind(evidence, "redis"):
        for transcript in evidence.transcripts:
            lags = list(_lags(evidence, transcript, fault))
            if not lags or not transcript.there(fault.ended):
                continue
            live = _live_from(lags)
            if _calm(evidence, fault.began, min(live, fault.ended + limit), but=[fault]):
                yield max(0.0, live - fault.ended), f"{fault.kind}: {transcript.run_id}"


def _lags(
    evidence: Evidence, transcript: Transcript, fault: Happened
) -> Iterator[tuple[float, float]]:
    """(when stored, seconds to the watcher) of what came after the fault; it was there before."""
    stored = _stored(evidence, transcript.run_id)
    if stored and stored[0] < fault.began:
        for seen, at in zip(transcript.seen, stored, strict=False):
            if at >= fault.ended and transcript.there(at):
                yield at, seen.at - at


def _live_from(lags: list[tuple[float, float]]) -> float:
    """From when on the events of a stretch came live, all but a tenth; the end if they never do."""
    for place, (begun, _) in enumerate(lags):
        stretch = [lag for at, lag in lags[place:] if at <= begun + STRETCH]
        whole = lags[-1][0] >= begun + STRETCH and len(stretch) >= 8
        if whole and sum(lag <= LIVE for lag in stretch) >= 0.9 * len(stretch):
            return begun
    return lags[-1][0]


def going_on_again(evidence: Evidence, limit: float) -> Iterator[Sample]:
    """By watchers of runs that were under way when Postgres went."""
    for fault in _of_kind(evidence, "postgres"):
        for transcript in evidence.transcripts:
            stored = _stored(evidence, transcript.run_id)
            under_way = stored and stored[0] < fault.began and stored[-1] > fault.ended
            came = next((seen.at for seen in transcript.seen if seen.at > fault.ended), None)
            if not (under_way and came and transcript.there(fault.ended)):
                continue
            if _calm(evidence, fault.began, min(came, fault.ended + limit), but=[fault]):
                yield came - fault.ended, f"{fault.kind}: {transcript.run_id}"


def _of_kind(evidence: Evidence, kind: str) -> list[Happened]:
    return [one for one in evidence.happened if one.kind.startswith(kind)]


def _calm(evidence: Evidence, since: float, till: float, *, but: Iterable[Happened] = ()) -> bool:
    """Whether no fault but these was at work between the two, nor is still felt."""
    others = [one for one in evidence.happened if one not in list(but)]
    return not any(one.began < till and since < one.ended + KINDS[one.kind].quiet for one in others)
