"""Conversations: whose they are, and the way to their runs."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from runs.admin import parts
from runs.admin.parts import BoundedList, ReadOnly, as_uuid
from runs.models import Conversation

SEARCHED = 20_000
"""The newest conversations, among whose titles words are looked for."""


@admin.register(Conversation)
class ConversationAdmin(ReadOnly, BoundedList):
    list_display = ("conversation", "title_shown", "agent_name", "owner_name", "created", "runs")
    list_display_links = None
    list_select_related = ("owner",)
    search_fields = ("id",)
    search_help_text = (
        f"An id. Other words are looked for in the titles of the newest {SEARCHED:,} conversations."
    )
    fields = (
        "id",
        "title",
        "agent",
        "owner",
        "visitor_key",
        "external_id",
        "created_at",
        "runs",
    )
    readonly_fields = fields

    class Media:
        css = {"all": ["koda_runs/admin.css"]}

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Conversation], search_term: str
    ) -> tuple[QuerySet[Conversation], bool]:
        words = search_term.strip()
        if not words:
            return queryset, False
        if id := as_uuid(words):
            return queryset.filter(pk=id), False
        among = parts.newest(Conversation.objects.all(), SEARCHED)
        said = Q(title__icontains=words) | Q(external_id=words)
        return queryset.filter(said, pk__in=among), False

    @admin.display(description="conversation")
    def conversation(self, conversation: Conversation) -> SafeString:
        url = reverse("admin:koda_runs_conversation_change", args=[conversation.pk])
        return parts.link(url, conversation.pk)

    @admin.display(description="title")
    def title_shown(self, conversation: Conversation) -> str:
        return conversation.title or parts.EMPTY

    @admin.display(description="agent")
    def agent_name(self, conversation: Conversation) -> str:
        return conversation.agent or parts.EMPTY

    @admin.display(description="owner")
    def owner_name(self, conversation: Conversation) -> str:
        return "visitor" if conversation.owner is None else conversation.owner.get_username()

    @admin.display(description="created")
    def created(self, conversation: Conversation) -> SafeString:
        return parts.age(conversation.created_at)

    @admin.display(description="runs")
    def runs(self, conversation: Conversation) -> SafeString:
        url = reverse("admin:koda_runs_run_changelist")
        return format_html('<a href="{}?q={}">runs</a>', url, conversation.pk)
