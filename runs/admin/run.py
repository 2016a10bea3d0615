"""Runs: the list, the page of one, and the overview."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from runs.admin import parts
from runs.admin.actions import Operations
from runs.admin.filters import AgeFilter, AgentFilter, StatusFilter
from runs.admin.log import log_page
from runs.admin.overview import OLDEST, overview
from runs.admin.page import facts_about, page_of
from runs.admin.parts import EMPTY, BoundedList, ReadOnly, as_uuid, seconds, since
from runs.models import Run, RunInput

SEARCHED = 20_000
"""The newest inputs, among which words are looked for."""

BULKY = ("output", "metadata", "error", "usage")


@admin.register(Run)
class RunAdmin(ReadOnly, BoundedList, Operations):
    list_display = (
        "run",
        "state",
        "agent_name",
        "conversation_link",
        "turn_number",
        "tries_made",
        "created",
        "waited",
        "first_token",
        "took",
        "held_by",
    )
    list_display_links = None
    list_filter = (StatusFilter, AgentFilter, AgeFilter)
    search_fields = ("id",)
    search_help_text = (
        "The id of a run or a conversation. Other words are looked for in the newest "
        f"{SEARCHED:,} messages."
    )
    actions = ("cancel_selected", "regenerate_selected")
    change_form_template = "admin/koda_runs/run/page.html"
    change_list_template = "admin/koda_runs/run/list.html"

    class Media:
        css = {"all": ["koda_runs/admin.css"]}

    # The list -------------------------------------------------------------------------------

    def get_queryset(self, request: HttpRequest) -> QuerySet[Run]:
        rows: QuerySet[Run] = super().get_queryset(request)
        match = request.resolver_match
        on_list = match is not None and match.url_name == "koda_runs_run_changelist"
        return rows.defer(*BULKY) if on_list else rows

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Run], search_term: str
    ) -> tuple[QuerySet[Run], bool]:
        words = search_term.strip()
        if not words:
            return queryset, False
        if id := as_uuid(words):
            return queryset.filter(Q(pk=id) | Q(conversation=id)), False
        searched = RunInput.objects.filter(
            pk__in=parts.newest(RunInput.objects.all(), SEARCHED), text__icontains=words
        )
        return queryset.filter(pk__in=searched.values("run_id")), False

    @admin.display(description="run")
    def run(self, run: Run) -> SafeString:
        url = reverse("admin:koda_runs_run_change", args=[run.pk])
        return parts.link(url, parts.tail(run.pk), title=str(run.pk))

    @admin.display(description="status")
    def state(self, run: Run) -> SafeString:
        return format_html('<span class="koda-status {0}">{0}</span>', run.status)

    @admin.display(description="agent")
    def agent_name(self, run: Run) -> str:
        return run.agent

    @admin.display(description="conversation")
    def conversation_link(self, run: Run) -> SafeString:
        url = reverse("admin:koda_runs_conversation_change", args=[run.conversation_id])
        return parts.link(url, parts.tail(run.conversation_id), title=str(run.conversation_id))

    @admin.display(description="turn")
    def turn_number(self, run: Run) -> int:
        return run.turn

    @admin.display(description="attempt / tries")
    def tries_made(self, run: Run) -> str:
        return f"{run.attempt} / {run.tries}"

    @admin.display(description="created")
    def created(self, run: Run) -> SafeString:
        return parts.age(run.created_at, units=1)

    @admin.display(description="waited")
    def waited(self, run: Run) -> str:
        return seconds(since(run.created_at, run.started_at))

    @admin.display(description="first token")
    def first_token(self, run: Run) -> str:
        return seconds(since(run.started_at, run.first_token_at))

    @admin.display(description="took")
    def took(self, run: Run) -> str:
        return seconds(since(run.created_at, run.finished_at))

    @admin.display(description="held by")
    def held_by(self, run: Run) -> SafeString:
        return format_html('<span class="koda-id">{}</span>', run.claimed_by or EMPTY)

    # The page -------------------------------------------------------------------------------

    def get_fieldsets(self, request: HttpRequest, obj: object = None) -> list[Any]:
        """None: the page is not a form."""
        return []

    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Run | None = None,
    ) -> HttpResponse:
        run: Run = context["original"]
        now: datetime = timezone.now()
        context |= {
            "title": f"Run {run.pk}",
            "subtitle": None,
            "run": run,
            "facts": facts_about(run, now=now),
            "page": page_of(run, now=now),
            "log": log_page(run, request.GET.get("log")),
            "may_operate": self.has_operate_permission(request),
        }
        return super().render_change_form(request, context, add, change, form_url, obj)

    # The overview ---------------------------------------------------------------------------

    def get_urls(self) -> list[URLPattern]:
        own = path(
            "overview/",
            self.admin_site.admin_view(self.overview_view),
            name="koda_runs_run_overview",
        )
        urls: list[URLPattern] = super().get_urls()
        return [own, *self.operation_urls(), *urls]

    def overview_view(self, request: HttpRequest) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        context = {
            **self.admin_site.each_context(request),
            "title": "Overview",
            "opts": Run._meta,
            "media": self.media,
            "overview": overview(),
            "oldest_shown": OLDEST,
        }
        return TemplateResponse(request, "admin/koda_runs/run/overview.html", context)
