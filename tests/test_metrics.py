"""What the processes count: every value moves, and in the right direction, in real runs."""

from __future__ import annotations

import math
from typing import Any

import httpx
import pytest
from django.db import OperationalError
from django.test import AsyncClient
from prometheus_client import REGISTRY
from prometheus_client.parser import text_string_to_metric_families

from runs import metrics
from runs.errors import AlreadyFinished, Superseded
from runs.events import StoredEvent
from runs.publisher import MAX_QUEUED, Publisher
from streaming import scrape
from streaming.metrics import count_held
from streaming.orderer import Orderer
from tests.live import Launcher, System
from tests.program import Program
from tests.servers import free_port
from tests.waiting import until

Numbers = dict[str, float]


def parse(text: str) -> Numbers:
    """Samples as `name{label=value}`."""
    found: Numbers = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
            found[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return found


def value(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


class Scraped:
    """A system whose worker tells its numbers on a port of its own where it is a process apart."""

    def __init__(self, system: System) -> None:
        self.system = system
        self._urls = {f"{system.gateway.url}/metrics"}

    def add_worker(self) -> Program:
        port = free_port()
        self._urls.add(f"http://127.0.0.1:{port}/metrics")
        worker = self.system.add("worker", "--metrics-port", str(port))
        worker.wait()
        return worker

    def numbers(self) -> Numbers:
        """The sums over all processes that answer."""
        sums: Numbers = {}
        for url in self._urls:
            answer = httpx.get(url)
            assert answer.status_code == 200
            assert answer.headers["Content-Type"].startswith("text/plain")
            for name, number in parse(answer.text).items():
                sums[name] = sums.get(name, 0.0) + number
        return sums


@pytest.fixture
def scraped(launch: Launcher) -> Scraped:
    system = launch(split=True, KODA_LEASE="2", KODA_HEARTBEAT="0.5", KODA_SWEEP_INTERVAL="0.2")
    system.worker.terminate()
    made = Scraped(system)
    made.add_worker()
    return made


async def test_a_run_moves_every_value_the_right_way(scraped: Scraped):
    before = scraped.numbers()
    assert before["koda_runs{status=pending}"] == 0
    gate = scraped.system.gate()
    async with scraped.system.visitor() as visitor:
        run_id = await visitor.ask("rounds", gate=str(gate))
        async with visitor.watch(run_id) as stream:
            await stream.take(3)
            during = scraped.numbers()
            gate.touch()
            await stream.to_end()
        await until(lambda: not scraped.numbers()["koda_watchers"], "the watcher's leave")
    after = scraped.numbers()

    assert (during["koda_runs{status=streaming}"], during["koda_watchers"]) == (1, 1)
    assert (after["koda_runs{status=streaming}"], after["koda_held_fragments"]) == (0, 0)

    def moved(name: str) -> float:
        return after.get(name, 0.0) - before.get(name, 0.0)

    assert moved("koda_runs_ended_total{status=done}") == 1
    assert moved("koda_queue_wait_seconds_count") == 1
    assert moved("koda_first_token_seconds_count") == 1
    assert moved("koda_fragment_gap_seconds_count") >= 1
    assert moved("koda_flush_events_sum") == 31  # ten rounds of three, and the end
    assert moved("koda_flush_seconds_count") == moved("koda_flush_events_count") >= 2
    assert moved("koda_log_reads_total{reason=open}") == 1
    assert 0 < moved("koda_queue_wait_seconds_sum") < 30


async def test_corrections_and_cancels_are_counted(scraped: Scraped):
    async with scraped.system.visitor() as visitor:
        conversation = await visitor.conversation("patient")
        gate = {"gate": str(scraped.system.gate())}
        run_id = (await visitor.say(conversation, "one", metadata=gate))["run"]["id"]
        async with visitor.watch(run_id) as stream:
            await stream.take(3)
            await visitor.say(conversation, "two", expect=200)
            await stream.to_end()
        stopped = await visitor.ask("silent", **gate)
        await visitor.call("POST", f"runs/{stopped}/cancel")
    numbers = scraped.numbers()
    assert numbers["koda_restarts_total{reason=merged}"] == 1
    assert numbers["koda_runs_ended_total{status=done}"] == 1
    assert numbers["koda_runs_ended_total{status=cancelled}"] == 1


async def test_a_lost_worker_is_a_takeover_and_a_restart(scraped: Scraped):
    system = scraped.system
    gate = system.gate()
    async with system.visitor() as visitor:
        run_id = await visitor.ask("rounds", gate=str(gate))
        async with visitor.watch(run_id) as stream:
            await stream.take(3)
            lost = system.programs[-1]
            lost.kill()
            scraped = Scraped(system)
            scraped.add_worker()
            gate.touch()
            await stream.to_end()
    numbers = scraped.numbers()
    assert numbers["koda_takeovers_total"] == 1
    assert numbers["koda_restarts_total{reason=recovered}"] == 1


async def test_a_port_that_is_taken_stops_the_worker_with_a_sentence(live: System):
    worker = live.add("worker", "--metrics-port", str(live.gateway.port))
    await until(worker.ended, "the worker's end")
    assert worker.code == 1
    assert f"--metrics-port {live.gateway.port}: Address already in use." in worker.log()
    assert "Traceback" not in worker.log()
    live.programs.remove(worker)


# Within the process ---------------------------------------------------------------------------


def test_a_refused_write_is_counted_under_its_reason():
    before = value("koda_refused_writes_total", kind="already_finished")
    metrics.refused(AlreadyFinished("over"))
    metrics.refused(Superseded("another"))
    assert value("koda_refused_writes_total", kind="already_finished") == before + 1
    assert value("koda_refused_writes_total", kind="superseded") >= 1


async def _nowhere(batch: object) -> None:
    """Publishes nothing."""


async def test_what_the_publisher_drops_is_counted():
    before = value("koda_publish_dropped_total")
    publisher = Publisher(_nowhere)  # never run: its queue only fills
    event = StoredEvent(0, "delta", {"text": "x"})
    for _ in range(MAX_QUEUED + 3):
        publisher.show(None, [event, event])
    assert publisher.dropped == 6
    assert value("koda_publish_dropped_total") == before + 6


def test_held_fragments_are_counted_while_their_stream_lives():
    orderer: Orderer[str] = Orderer(0)
    count_held(orderer)
    before = value("koda_held_fragments")
    orderer.offer(2, "c")
    orderer.offer(1, "b")
    assert value("koda_held_fragments") == before + 2
    orderer.offer(0, "a")
    assert value("koda_held_fragments") == before
    orderer.offer(9, "z")
    del orderer
    assert value("koda_held_fragments") == before


@pytest.mark.django_db(transaction=True)
async def test_without_the_database_the_other_numbers_are_still_told(
    async_client: AsyncClient, monkeypatch: pytest.MonkeyPatch
):
    def away() -> Any:  # noqa: ANN401
        raise OperationalError("away")

    monkeypatch.setattr(scrape, "_open_runs", away)
    answer = await async_client.get("/metrics")
    numbers = parse(answer.content.decode())
    assert answer.status_code == 200
    assert math.isnan(numbers["koda_runs{status=pending}"])
    assert "koda_watchers" in numbers


@pytest.mark.django_db
def test_open_runs_cost_two_queries(conversation, django_assert_num_queries):
    with django_assert_num_queries(2):
        numbers, oldest = scrape._open_runs()
    assert (numbers, oldest) == ({"pending": 0}, 0.0)
