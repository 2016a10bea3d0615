"""Fill a database with runs and messages, then time the pages of the admin on it.

    DATABASE_URL=… python -m bench.fill_admin [--runs 100000] [--messages 1500000]

Made up, but shaped like the real thing: conversations of five turns over ten days, most runs done,
some failed or cancelled, a few hundred open, and one run with a log of a hundred thousand events.
A database that has runs already is timed as it is. The superuser `bench` has the password `bench`.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "koda.settings")
if not os.environ.get("DATABASE_URL"):
    sys.exit("Set DATABASE_URL: this is not for a database that anybody needs.")
django.setup()

from django.contrib.auth import get_user_model  # noqa: E402 - models come after the set-up
from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402
from django.test import Client  # noqa: E402
from django.test.utils import CaptureQueriesContext  # noqa: E402
from django.urls import reverse  # noqa: E402

from runs.admin.parts import first_id_at  # noqa: E402
from runs.models import Conversation, Message, Run, RunInput  # noqa: E402
from runs.reports import report  # noqa: E402

TURNS = 5
SPAN = timedelta(days=10)
BATCH = 2_000
LONG_LOG = 100_000
REPEATS = 5
WORDS = ("the", "order", "left", "our", "house", "on", "monday", "and", "comes", "this", "week")
chance = random.Random(7)


def fill(runs: int, messages: int) -> None:
    events = max(2, (messages - LONG_LOG) // runs)
    conversations = runs // TURNS
    start = datetime.now(UTC) - SPAN
    for first in range(0, conversations, BATCH // TURNS):
        numbers = range(first, min(first + BATCH // TURNS, conversations))
        times = [start + SPAN * (number / conversations) for number in numbers]
        made = [Conversation(id=id_at(at), visitor_key="bench", created_at=at) for at in times]
        batch = [run for conversation in made for run in turns_of(conversation, start + SPAN)]
        logs = [row for run in batch for row in log_of(run, events)]
        Conversation.objects.bulk_create(made)
        Run.objects.bulk_create(batch)
        RunInput.objects.bulk_create(inputs_of(batch))
        Message.objects.bulk_create(logs)
        print(f"\r{numbers[-1] * TURNS:,} runs", end="", flush=True)
    lengthen_a_log()
    for number in range(8):
        report(f"worker-{number}/4711/0badcafe", concurrency=20, running=chance.randint(0, 20))
    print(f"\r{Run.objects.count():,} runs, {Message.objects.count():,} messages")


def id_at(at: datetime) -> UUID:
    """A time-ordered id as it would have been made then."""
    return UUID(int=first_id_at(at).int | 0x7 << 76 | 0x2 << 62 | chance.getrandbits(60))


def turns_of(conversation: Conversation, now: datetime) -> Iterator[Run]:
    at = conversation.created_at
    for turn in range(1, TURNS + 1):
        at = min(at + timedelta(seconds=chance.uniform(20, 200)), now)
        newest = turn == TURNS and now - at < timedelta(hours=3)
        yield run_at(conversation, turn, at, status_of(newest=newest))


def status_of(*, newest: bool) -> str:
    if newest and chance.random() < 0.8:
        return chance.choice(["pending", "pending", "running", "streaming"])
    return chance.choices(["done", "failed", "cancelled"], [96, 2, 2])[0]


def run_at(conversation: Conversation, turn: int, at: datetime, status: str) -> Run:
    over = status in {"done", "failed", "cancelled"}
    claimed = at + timedelta(seconds=chance.expovariate(3))
    first = claimed + timedelta(seconds=chance.uniform(0.2, 3))
    end = first + timedelta(seconds=chance.uniform(1, 20))
    active = status in {"running", "streaming"}
    return Run(
        id=id_at(at),
        conversation=conversation,
        turn=turn,
        status=status,
        agent=chance.choice(["demo", "openai"]),
        attempt=0 if status == "pending" else 1,
        tries=0 if status == "pending" else 1,
        input_count=1,
        claimed_by=f"worker-{chance.randrange(8)}/4711/0badcafe" if active else "",
        lease_expires_at=datetime.now(UTC) + timedelta(hours=1) if active else None,
        created_at=at,
        started_at=None if status == "pending" else claimed,
        first_token_at=first if status in {"streaming", "done"} else None,
        finished_at=end if over else None,
        output=sentence(250) if status == "done" else "",
        finish_reason={"done": "stop", "failed": "error", "cancelled": "user"}.get(status, ""),
    )


def inputs_of(runs: Iterable[Run]) -> list[RunInput]:
    return [
        RunInput(
            run=run,
            conversation_id=run.conversation_id,
            position=0,
            text=sentence(15),
            created_at=run.created_at,
        )
        for run in runs
    ]


def log_of(run: Run, events: int) -> list[Message]:
    """Also gives the run its `next_seq`: to be called before the run is stored."""
    if run.started_at is None:
        return []
    end = {"done": "run_completed", "failed": "run_failed", "cancelled": "run_cancelled"}
    types = ["run_started", *["delta"] * (events - 2), end.get(run.status, "delta")]
    run.next_seq = len(types)
    step = ((run.finished_at or run.started_at) - run.started_at) / len(types)
    return [message(run, seq, type, run.started_at + step * seq) for seq, type in enumerate(types)]


def message(run: Run, seq: int, type: str, at: datetime) -> Message:
    data: dict[str, Any] = {"text": sentence(6)} if type == "delta" else {"reason": "stop"}
    return Message(run_id=run.pk, seq=seq, type=type, data=data, created_at=at)


def lengthen_a_log() -> None:
    run = Run.objects.filter(status="streaming").order_by("-pk").first()
    if run is None:
        return
    Message.objects.filter(run_id=run.pk).delete()
    Run.objects.filter(pk=run.pk).update(next_seq=LONG_LOG)
    for first in range(0, LONG_LOG, BATCH):
        Message.objects.bulk_create(
            message(run, seq, "delta", run.created_at + timedelta(milliseconds=seq))
            for seq in range(first, first + BATCH)
        )


def sentence(words: int) -> str:
    return " ".join(chance.choices(WORDS, k=words))


def pages() -> Iterator[tuple[str, str]]:
    runs = reverse("admin:koda_runs_run_changelist")
    newest = Run.objects.order_by("-pk").first()
    assert newest is not None
    yield "list", runs
    yield "list, last page", f"{runs}?p=100"
    for query in ("status=open", "status=pending", "status=streaming", "status=failed"):
        yield f"list, {query}", f"{runs}?{query}"
    for query in ("agent=demo", "agent=nobody", "age=hour", "age=week", "age=older"):
        yield f"list, {query}", f"{runs}?{query}"
    yield "list, status=failed&age=day", f"{runs}?status=failed&age=day"
    yield "search, run id", f"{runs}?q={newest.pk}"
    yield "search, conversation id", f"{runs}?q={newest.conversation_id}"
    yield "search, common word", f"{runs}?q=monday"
    yield "search, no such word", f"{runs}?q=xyzzy"
    done = Run.objects.filter(status="done").order_by("-pk").first()
    long = Message.objects.filter(seq=LONG_LOG - 1).values_list("run_id", flat=True).first()
    for name, id in (("run", done and done.pk), ("run, long log", long)):
        if id is not None:
            yield name, reverse("admin:koda_runs_run_change", args=[id])
    yield "overview", reverse("admin:koda_runs_run_overview")
    yield "conversations", reverse("admin:koda_runs_conversation_changelist")


def measure() -> None:
    client = Client(HTTP_HOST="localhost")
    client.force_login(bench_user(), backend="django.contrib.auth.backends.ModelBackend")
    print(f"{'page':32} {'median ms':>10} {'slowest ms':>10} {'queries':>8}  slowest query")
    for name, url in pages():
        client.get(url)
        took = []
        for _ in range(REPEATS):
            begun = time.perf_counter()
            with CaptureQueriesContext(connection) as captured:
                assert client.get(url).status_code in {200, 302}, url
            took.append((time.perf_counter() - begun) * 1000)
        slowest = max(captured, key=lambda query: float(query["time"]))
        print(
            f"{name:32} {statistics.median(took):10.0f} {max(took):10.0f} {len(captured):8}  "
            f"{float(slowest['time']) * 1000:.0f} ms {slowest['sql'][:60]}"
        )


def bench_user() -> Any:  # noqa: ANN401
    users = get_user_model().objects
    found = users.filter(username="bench").first()
    return found or users.create_superuser("bench", password="bench")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--messages", type=int, default=1_500_000)
    options = parser.parse_args()
    call_command("migrate", verbosity=0)
    if not Run.objects.exists():
        begun = time.perf_counter()
        fill(options.runs, options.messages)
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute("ANALYZE")
        print(f"filled in {time.perf_counter() - begun:.0f} s")
    measure()


if __name__ == "__main__":
    main()
