"""Those who ask, correct, cancel and watch, over HTTP, as their plan says."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import httpx

from tests.chaos import model
from tests.chaos.evidence import Accepted, Cancelled, Evidence, Refusal, Seen, Transcript
from tests.chaos.harm import wait
from tests.chaos.plan import Turn, Watching, turns
from tests.chaos.site import Site
from tests.live_client import Frame, Stream, Visitor
from tests.stub_model import Request
from tests.waiting import until

RETRY = 0.2
"""Seconds between two tries of a call."""

MAX_STALLS = 3
"""Times that a watcher stops reading: without an end it would outlast everybody."""

PATIENCE = 60.0
"""Seconds after which a watcher without its end gives up: a violation."""


class Watcher:
    """A page with one run: keeps its last id and comes back, to the other gateway if need be."""

    def __init__(self, visitors: list[Visitor], run_id: str, name: str, plan: Watching) -> None:
        self.transcript = Transcript(run_id, name)
        self._visitors = visitors
        self._plan = plan
        self._gateway = plan.gateway
        self._pause_at = plan.every
        self._heard = time.monotonic()
        self._since = 0.0
        self._stalls = 0

    async def follow(self) -> None:
        """Until the terminal event, or until nothing has come for too long."""
        if self._plan.habit == "late":
            await wait(self._plan.seconds)
            self._heard = time.monotonic()
        while not self.transcript.complete:
            try:
                await self._connect()
            except (httpx.TransportError, TimeoutError):
                self._gateway = 1 - self._gateway
            except AssertionError as error:  # a frame that does not parse
                self.transcript.problem = str(error)
            if not self.transcript.complete:
                await wait(RETRY)
            if time.monotonic() - self._heard > PATIENCE and not self.transcript.problem:
                self.transcript.problem = f"nothing new for {PATIENCE:g} s"
            if self.transcript.problem:
                return

    async def _connect(self) -> None:
        seen = self.transcript.seen
        last_id = seen[-1].id if seen else None
        visitor = self._visitors[self._gateway]
        async with visitor.watch(self.transcript.run_id, last_id=last_id) as stream:
            if stream.status != 200:
                self._refused(stream.status)
                return
            self.transcript.connections += 1
            self._since = time.time()
            try:
                while not self.transcript.complete and await self._take(stream):
                    pass
            finally:
                self._leave()

    def _leave(self) -> None:
        """It reads no more, for now."""
        self.transcript.present.append((self._since, time.time()))

    def _refused(self, status: int) -> None:
        self._gateway = 1 - self._gateway
        self.transcript.errors.append(f"status {status}")
        if status < 500:
            self.transcript.problem = f"the stream answered {status}"

    async def _take(self, stream: Stream) -> bool:
        """The next frame. False ends the connection."""
        async with asyncio.timeout(PATIENCE):
            frame = await stream.next()
        if frame is None:
            return False
        if frame.event == "error":
            self.transcript.errors.append(frame.data["code"])
            self._gateway = 1 - self._gateway
        elif frame.id is not None:
            self._note(frame)
            return await self._go_on()
        return True

    def _note(self, frame: Frame) -> None:
        assert frame.id is not None
        assert frame.event is not None
        self._heard = time.monotonic()
        self.transcript.seen.append(Seen(frame.id, frame.event, frame.data, time.time()))
        self.transcript.complete = frame.terminal

    async def _go_on(self) -> bool:
        """Leave or stall if it is time for that."""
        if len(self.transcript.seen) < self._pause_at or self.transcript.complete:
            return True
        self._pause_at += self._plan.every
        if self._plan.habit == "stalling" and self._stalls < MAX_STALLS:
            self._stalls += 1
            self._leave()
            await wait(self._plan.seconds)
            self._since = time.time()
        return self._plan.habit != "cutting"


class Person:
    """Has conversations, one turn after the other, until the time is over."""

    def __init__(self, site: Site, evidence: Evidence, *, seed: int, number: int) -> None:
        self._site = site
        self._evidence = evidence
        self._name = f"p{number}"
        self._plan = turns(seed, number)
        self._said = 0
        self._conversation = ""
        self._watching: list[asyncio.Task[None]] = []
        self._visitors = [site.system.visitor(gateway) for gateway in site.gateways]
        self._turn_to = 0

    async def arrive(self) -> None:
        """Open the page, before anything is broken; then be the same person at both gateways."""
        await self._visitors[0].__aenter__()
        self._visitors[1].http.cookies = self._visitors[0].http.cookies
        self._visitors[1].http.headers = self._visitors[0].http.headers

    async def live(self, until_time: float) -> None:
        """`until_time` is when the last answer should be over, in monotonic seconds."""
        try:
            for turn in self._plan:
                if time.monotonic() + turn.words * turn.pace > until_time:
                    break
                await self._have(turn)
            await asyncio.gather(*self._watching)
        finally:
            for visitor in self._visitors:
                await visitor.http.aclose()

    async def _have(self, turn: Turn) -> None:
        if turn.fresh or not self._conversation:
            created = await self._call("conversations", json={})
            self._conversation = created["id"]
        asked = await self._say(turn, on_busy="merge", silent=turn.silent)
        watchers = [self._watch(asked, plan) for plan in turn.watching]
        mine = list(self._watching[-len(watchers) :])
        if turn.act != "nothing":
            await self._until_time_to_act(turn, watchers[0].transcript)
            await wait(turn.offset)
            await self._act(turn, asked)
        await asyncio.gather(*mine)

    def _watch(self, run_id: str, plan: Watching) -> Watcher:
        watcher = Watcher(
            self._visitors, run_id, f"{self._name}/{len(self._watching)} {plan.habit}", plan
        )
        self._evidence.transcripts.append(watcher.transcript)
        self._watching.append(asyncio.create_task(watcher.follow(), name=f"watch {run_id}"))
        return watcher

    async def _until_time_to_act(self, turn: Turn, transcript: Transcript) -> None:
        last_word = f"w{turn.words - 1} "

        def due() -> bool:
            if transcript.complete or transcript.problem:
                return True
            if turn.after is not None and len(transcript.seen) >= turn.after:
                return True
            newest = transcript.seen[-1] if transcript.seen else None
            return newest is not None and last_word in (newest.data.get("text") or "")

        await until(due, "the moment to act", timeout=3 * PATIENCE)

    async def _act(self, turn: Turn, run_id: str) -> None:
        if turn.act == "cancel":
            await self._cancel(run_id)
            return
        on_busy = {"correct": "merge"}.get(turn.act, turn.act)
        answered_by = await self._say(turn, on_busy=on_busy)
        if answered_by != run_id:
            self._watch(answered_by, turn.watching[0])

    async def _say(self, turn: Turn, *, on_busy: str, silent: bool = False) -> str:
        """Post a message until it is accepted; the run that answers it."""
        self._said += 1
        name = f"{self._name}-{self._said}"
        text = model.message(name, words=turn.words, pace=turn.pace, silent=silent)
        answer = await self._call(
            f"conversations/{self._conversation}/messages",
            json={"text": text, "on_busy": on_busy},
            headers={"Idempotency-Key": name},
        )
        run_id = str(answer["run"]["id"])
        self._evidence.accepted.append(Accepted(name, run_id, answer["merged"], time.time()))
        return run_id

    async def _cancel(self, run_id: str) -> None:
        answer = await self._call(f"runs/{run_id}/cancel")
        at = time.time()
        names = {name for given in answer["inputs"] for name in model.NAME.findall(given["text"])}
        calls = [call for call in self._site.stub.requests if open_for(call, names)]
        if answer["status"] != "cancelled" or not calls:
            return
        await until(
            lambda: not any(open_for(call, names) for call in calls),
            "the provider's connection to be closed",
            timeout=PATIENCE,
        )
        self._evidence.cancels.append(Cancelled(run_id, at, time.time()))

    async def _call(self, path: str, **more: object) -> dict[str, Any]:
        """POST, again and again, at one gateway or the other, until it succeeds."""
        began = time.monotonic()
        while True:
            visitor = self._visitors[self._turn_to]
            try:
                async with asyncio.timeout(10):
                    response = await visitor.http.post(f"/api/{path}", **more)
            except (httpx.TransportError, TimeoutError):
                response = None
            if response is not None and response.is_success:
                return dict(response.json())
            if response is not None:
                refusal = Refusal(time.time(), path, response.status_code, response.text[:500])
                self._evidence.refusals.append(refusal)
            assert time.monotonic() - began < PATIENCE, f"{path}: refused for {PATIENCE:g} s"
            self._turn_to = 1 - self._turn_to
            await wait(RETRY)


def open_for(call: Request, names: set[str]) -> bool:
    """Whether the model is still answering one of these messages there."""
    if call.disconnected.is_set() or call.answered.is_set():
        return False
    return any(names & set(model.NAME.findall(text)) for text in model.asked(call))
