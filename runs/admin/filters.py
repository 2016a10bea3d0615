"""What the list of runs can be narrowed to. None of these asks the database for its choices."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest
from django.utils import timezone

from runs import conf, states
from runs.admin.parts import first_id_at
from runs.agents.registry import agent_paths
from runs.models import Run
from runs.sanitize import clean_text
from runs.states import Status

CLOCKS_APART = timedelta(hours=1)
"""Ids bear the time of the process that made them: the search goes this much further."""

AGES = {
    "hour": ("Last hour", timedelta(hours=1)),
    "day": ("Last 24 hours", timedelta(days=1)),
    "week": ("Last 7 days", timedelta(days=7)),
}
OLDER = "older"

IS_OPEN = Q(status=Status.PENDING) | Q(status__in=states.ACTIVE)
"""In two halves, each the condition of a partial index."""

Choices = list[tuple[str, str]]


class StatusFilter(admin.SimpleListFilter):
    title = "status"
    parameter_name = "status"

    def lookups(self, request: HttpRequest, model_admin: object) -> Choices:
        return [("open", "open (not over yet)"), *((str(status), str(status)) for status in Status)]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Run]) -> QuerySet[Run]:
        match self.value():
            case None:
                return queryset
            case "open":
                return queryset.filter(IS_OPEN)
            case status if status in set(Status):
                return queryset.filter(status=status)
            case _:
                return queryset.none()


class AgentFilter(admin.SimpleListFilter):
    """The agents of the settings; one that is gone can still be named in the address."""

    title = "agent"
    parameter_name = "agent"

    def lookups(self, request: HttpRequest, model_admin: object) -> Choices:
        names = set(agent_paths(conf.get().agents)) | set(request.GET.getlist("agent"))
        return [(name, name) for name in sorted(names)]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Run]) -> QuerySet[Run]:
        agent = self.value()
        return queryset if agent is None else queryset.filter(agent=clean_text(agent))


class AgeFilter(admin.SimpleListFilter):
    """By the database's clock; the id only keeps the search short."""

    title = "age"
    parameter_name = "age"

    def lookups(self, request: HttpRequest, model_admin: object) -> Choices:
        choices = [(key, title) for key, (title, _) in AGES.items()]
        return [*choices, (OLDER, "Older than 7 days")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Run]) -> QuerySet[Run]:
        key = self.value()
        if key == OLDER:
            return older_than(queryset, AGES["week"][1])
        if key not in AGES:
            return queryset
        return younger_than(queryset, AGES[key][1])


def younger_than(runs: QuerySet[Any], span: timedelta) -> QuerySet[Any]:
    first = first_id_at(timezone.now() - span - CLOCKS_APART)
    return runs.filter(pk__gte=first, created_at__gte=Now() - span)


def older_than(runs: QuerySet[Any], span: timedelta) -> QuerySet[Any]:
    last = first_id_at(timezone.now() - span + CLOCKS_APART)
    return runs.filter(pk__lt=last, created_at__lt=Now() - span)
