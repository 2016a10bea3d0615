"""Reading the tables: the questions that the rest of the code asks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Now

from runs import states
from runs.events import Event, StoredEvent, numbered
from runs.paging import Page, Paging, cut
from runs.sanitize import clean_text
from runs.states import Status

if TYPE_CHECKING:
    from runs.models import Conversation, Message, Run  # noqa: F401 - named in a base class


class ConversationQuerySet(models.QuerySet["Conversation"]):
    def owned_by(self, owner: Owner) -> ConversationQuerySet:
        return self.filter(owner.condition())

    def search(self, words: str) -> ConversationQuerySet:
        """Conversations whose title, messages or answers contain `words`; all for none."""
        words = clean_text(words).strip()
        if not words:
            return self.all()
        said = self.model.objects.filter(
            Q(runs__inputs__text__icontains=words) | Q(runs__output__icontains=words)
        )
        return self.filter(Q(title__icontains=words) | Q(pk__in=said.values("pk")))


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose conversations: a user's, or those of a visitor's browser session."""

    user: AbstractBaseUser | None = None
    visitor_key: str = ""

    @property
    def name(self) -> str:
        """Tells owners apart; nothing to show to anybody."""
        return f"visitor-{self.visitor_key}" if self.user is None else f"user-{self.user.pk}"

    def condition(self, prefix: str = "") -> Q:
        if self.user is not None:
            return Q(**{f"{prefix}owner": self.user})
        if self.visitor_key:
            return Q(**{f"{prefix}visitor_key": self.visitor_key})
        return Q(pk__in=[])

    def owns(self, owner_id: object, visitor_key: str) -> bool:
        """Whether a conversation with these is theirs: the same as `condition`, for a row."""
        if self.user is not None:
            return bool(owner_id == self.user.pk)
        return bool(self.visitor_key) and visitor_key == self.visitor_key


class MessageQuerySet(models.QuerySet["Message"]):
    def log(self, run_id: UUID, *, start: int = 0, limit: int | None = None) -> list[StoredEvent]:
        """The run's events from number `start` on, at most `limit`, in order."""
        rows = (
            self.filter(run_id=run_id, seq__gte=start)
            .order_by("seq")
            .values_list("seq", "type", "data")
        )
        return [StoredEvent(*row) for row in (rows if limit is None else rows[:limit])]

    def page(self, run_id: UUID, *, start: int, limit: int) -> Page:
        """The same, but no more of it than should be in memory at once; `Paging` goes on."""
        return cut(self.log(run_id, start=start, limit=limit))

    def pages(self, run_id: UUID, *, start: int = 0) -> Iterator[list[StoredEvent]]:
        """The run's events from number `start` on, in order; a page at a time is in memory."""
        paging, more = Paging(), True
        while more and (page := self.page(run_id, start=start, limit=paging.limit)).events:
            yield page.events
            start, more = page.events[-1].seq + 1, paging.more(page)

    def replace(self, run_id: UUID, snapshot: StoredEvent) -> int:
        """Let `snapshot` stand for all events up to its number; returns how many rows less.

        It takes over the time of the event whose number it bears.
        """
        rows = self.filter(run_id=run_id)
        rows.filter(seq=snapshot.seq).update(type=snapshot.type, data=snapshot.data)
        gone, _ = rows.filter(seq__lt=snapshot.seq).delete()
        return gone

    def add(self, run_id: UUID, seq: int, new: Sequence[Event]) -> list[StoredEvent]:
        """Insert `new` as numbers seq, seq + 1 … The caller has moved `next_seq` already."""
        stored = numbered(seq, new)
        self.bulk_create(self.rows(run_id, stored))
        return stored

    def rows(self, run_id: UUID, stored: Sequence[StoredEvent]) -> list[Message]:
        return [
            self.model(run_id=run_id, seq=event.seq, type=event.type, data=event.data)
            for event in stored
        ]


class RunQuerySet(models.QuerySet["Run"]):
    def owned_by(self, owner: Owner) -> RunQuerySet:
        return self.filter(owner.condition("conversation__"))

    def of_owner(self, conversation: Conversation) -> RunQuerySet:
        """Runs in all conversations of whom this one belongs to."""
        if conversation.owner_id is not None:
            return self.filter(conversation__owner=conversation.owner_id)
        return self.filter(
            conversation__owner=None, conversation__visitor_key=conversation.visitor_key
        )

    def active(self) -> RunQuerySet:
        return self.filter(status__in=states.ACTIVE)

    def open(self) -> RunQuerySet:
        return self.filter(status__in=states.OPEN)

    def claimable(self) -> RunQuerySet:
        """Pending runs whose conversation has neither an active run nor an earlier pending one."""
        before = self.model.objects.filter(conversation=OuterRef("conversation")).filter(
            Q(status__in=states.ACTIVE) | Q(status=Status.PENDING, turn__lt=OuterRef("turn"))
        )
        return self.filter(~Exists(before), status=Status.PENDING).order_by("created_at", "id")

    def to_archive(self, age: timedelta) -> RunQuerySet:
        """Runs that have been over for `age`, by the database's clock, and were not archived."""
        return self.filter(archived_at=None, finished_at__lte=Now() - age).order_by("finished_at")

    def expired(self) -> RunQuerySet:
        """Active runs whose lease has run out, by the database's clock."""
        return self.active().filter(lease_expires_at__lte=Now())
