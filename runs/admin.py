"""Runs and conversations to look at. Nothing is written here."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest

from runs.models import Conversation, Run, RunInput


class ReadOnly:
    """May be seen by whoever has the view permission, changed by nobody."""

    def has_add_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False


class InputInline(ReadOnly, admin.TabularInline):  # type: ignore[type-arg]
    model = RunInput
    fields = ("position", "text", "created_at")
    readonly_fields = fields
    extra = 0


@admin.register(Run)
class RunAdmin(ReadOnly, admin.ModelAdmin):  # type: ignore[type-arg]
    list_display = ["id", "status", "agent", "turn", "attempt", "created_at", "finished_at"]
    list_filter = ["status", "agent"]
    list_select_related = False
    ordering = ["-id"]
    show_full_result_count = False
    inlines = [InputInline]


@admin.register(Conversation)
class ConversationAdmin(ReadOnly, admin.ModelAdmin):  # type: ignore[type-arg]
    list_display = ["id", "title", "agent", "created_at"]
    ordering = ["-id"]
    show_full_result_count = False
