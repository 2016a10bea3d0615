"""The four tables. What the code should not write, the database refuses."""

from __future__ import annotations

from collections.abc import Iterable

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from runs import states
from runs.ids import uuid7
from runs.managers import RunManager
from runs.querysets import ConversationQuerySet, MessageQuerySet
from runs.states import Status


def _values(statuses: Iterable[Status]) -> list[str]:
    """Plain strings, so that migrations do not depend on the enum."""
    return sorted(status.value for status in statuses)


class Conversation(models.Model):
    """A thread of turns. It belongs to a user or to a visitor's browser session."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.CASCADE, related_name="+"
    )
    visitor_key = models.CharField(max_length=64, blank=True, default="")
    external_id = models.CharField(max_length=255, null=True, blank=True)  # noqa: DJ001
    agent = models.CharField(max_length=100, blank=True, default="")
    title = models.CharField(max_length=200, blank=True, default="")
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = ConversationQuerySet.as_manager()

    class Meta:
        db_table = "koda_conversations"
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "external_id"],
                condition=Q(owner__isnull=False),
                name="koda_conversation_owner_external_id",
            ),
            models.UniqueConstraint(
                fields=["visitor_key", "external_id"],
                condition=Q(owner__isnull=True),
                name="koda_conversation_visitor_external_id",
            ),
            models.CheckConstraint(
                condition=Q(owner__isnull=True) | Q(visitor_key=""),
                name="koda_conversation_one_owner",
            ),
        ]
        indexes = [
            models.Index(fields=["owner", "-id"], name="koda_conversation_by_owner"),
            models.Index(
                fields=["visitor_key", "-id"],
                condition=~Q(visitor_key=""),
                name="koda_conversation_by_visitor",
            ),
        ]

    def __str__(self) -> str:
        return self.title or str(self.id)


class Run(models.Model):
    """One execution that answers one turn.

    `status` is written by `RunManager` alone, through conditional UPDATEs. Leases and counters
    stay out of the indexes, so that Postgres can update the row in place.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="runs")
    turn = models.PositiveIntegerField()
    status = models.CharField(
        max_length=10,
        choices=[(status.value, status.value) for status in Status],
        default=Status.PENDING.value,
    )
    agent = models.CharField(max_length=100)
    metadata = models.JSONField(default=dict, blank=True)
    replaces = models.OneToOneField(
        "self", null=True, blank=True, on_delete=models.SET_NULL, related_name="replaced_by"
    )
    """The run whose place this one has taken; that one is history."""

    attempt = models.PositiveIntegerField(default=0)
    """The fence: names the try that may write. Only ever grows."""
    tries = models.PositiveIntegerField(default=0)
    """Counts against MAX_ATTEMPTS; a hand-back is not a try."""
    next_seq = models.PositiveBigIntegerField(default=0)
    input_count = models.PositiveIntegerField(default=0)
    claimed_by = models.CharField(max_length=200, blank=True, default="")
    lease_expires_at = models.DateTimeField(null=True, blank=True)

    created_at = models.DateTimeField(db_default=Now(), editable=False)
    started_at = models.DateTimeField(null=True, blank=True)
    first_token_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    archived_at = models.DateTimeField(null=True, blank=True)
    """When retention was here; it comes once."""
    tool_order = models.JSONField(null=True, blank=True)
    """The ids of the tools in a collapsed log, by their ends: jsonb keeps no order of keys."""

    output = models.TextField(blank=True, default="")
    error = models.JSONField(null=True, blank=True)
    usage = models.JSONField(null=True, blank=True)
    finish_reason = models.CharField(max_length=100, blank=True, default="")
    """How it ended: the model's word for a done run, the stored reason for the other two."""

    objects = RunManager()

    class Meta:
        db_table = "koda_runs"
        permissions = [("operate_run", "Can cancel and regenerate run")]
        constraints = [
            models.UniqueConstraint(
                fields=["conversation", "turn"], name="koda_run_conversation_turn"
            ),
            models.UniqueConstraint(
                fields=["conversation"],
                condition=Q(status__in=_values(states.ACTIVE)),
                name="koda_run_one_active_per_conversation",
            ),
            models.CheckConstraint(
                condition=Q(status__in=_values(states.TERMINAL), finished_at__isnull=False)
                | Q(status__in=_values(states.OPEN), finished_at__isnull=True),
                name="koda_run_finished_at_iff_terminal",
            ),
            models.CheckConstraint(
                condition=Q(archived_at__isnull=True) | Q(finished_at__isnull=False),
                name="koda_run_archived_only_if_finished",
            ),
        ]
        indexes = [
            models.Index(
                fields=["created_at", "id"],
                condition=Q(status=Status.PENDING.value),
                name="koda_run_pending",
            ),
            models.Index(
                fields=["id"],
                condition=Q(status__in=_values(states.ACTIVE)),
                name="koda_run_active",
            ),
            models.Index(
                fields=["finished_at"],
                condition=Q(archived_at__isnull=True, finished_at__isnull=False),
                name="koda_run_to_archive",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.id} ({self.status})"

    @property
    def is_terminal(self) -> bool:
        return self.status in states.TERMINAL

    @property
    def is_handed_back(self) -> bool:
        """Let go by a worker that was told to stop, through no fault of the run."""
        return self.claimed_by == "" and self.error is None


class RunInput(models.Model):
    """A user message of a run. A merged correction is a further input of the same run."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="inputs")
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="+")
    position = models.PositiveIntegerField()
    text = models.TextField()
    key = models.CharField(max_length=255, null=True, blank=True)  # noqa: DJ001
    body_hash = models.CharField(max_length=64, blank=True, default="")
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        db_table = "koda_run_inputs"
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(fields=["run", "position"], name="koda_run_input_position"),
            models.UniqueConstraint(fields=["conversation", "key"], name="koda_run_input_key"),
        ]

    def __str__(self) -> str:
        return self.text[:60]


class Message(models.Model):
    """One event of a run's log.

    No foreign-key constraint: the guarded write that inserts the row has proven the run.
    """

    pk = models.CompositePrimaryKey("run_id", "seq")
    run = models.ForeignKey(
        Run, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="+"
    )
    seq = models.PositiveBigIntegerField()
    type = models.CharField(max_length=40)
    data = models.JSONField()
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = MessageQuerySet.as_manager()

    class Meta:
        db_table = "koda_messages"

    def __str__(self) -> str:
        return f"{self.run_id}/{self.seq} {self.type}"


class ApiToken(models.Model):
    """A key for programs. Only its hash is kept; the key itself is shown once."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=100, blank=True, default="")
    hash = models.CharField(max_length=64, unique=True, editable=False)
    can_write = models.BooleanField(default=True)
    """Without it the token reads and nothing else."""
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        db_table = "koda_api_tokens"
        verbose_name = "API token"

    def __str__(self) -> str:
        return self.name or f"token {self.pk}"


class WorkerProcess(models.Model):
    """A worker as it last reported itself. Nothing depends on this table: it is for people."""

    name = models.CharField(max_length=200, primary_key=True)
    concurrency = models.PositiveIntegerField()
    running = models.PositiveIntegerField(default=0)
    started_at = models.DateTimeField(db_default=Now(), editable=False)
    seen_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "koda_workers"
        verbose_name = "worker"

    def __str__(self) -> str:
        return self.name
