"""What the pages of the admin share: how they read, count, search, and say times."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import cached_property
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

PAGE = 50
COUNTED = 5_000
"""Rows that a list counts and lets you page through; filters and search lead to the others."""

UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
EMPTY = "–"


class ReadOnly:
    """May be seen by whoever has the view permission, changed by nobody."""

    def has_add_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False


class BoundedPaginator(Paginator):  # type: ignore[type-arg]
    """Counts up to COUNTED rows, and never the whole table."""

    object_list: QuerySet[Any]

    @cached_property
    def count(self) -> int:
        return self.object_list.order_by()[:COUNTED].count()

    @property
    def is_bounded(self) -> bool:
        return self.count == COUNTED


class BoundedList(admin.ModelAdmin):  # type: ignore[type-arg]
    """A list, newest first, whose cost does not grow with its table."""

    list_per_page = PAGE
    list_max_show_all = PAGE
    ordering = ("-pk",)
    sortable_by = ()
    paginator = BoundedPaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER


def as_uuid(text: str) -> UUID | None:
    """The id that somebody typed or pasted, or None."""
    try:
        return UUID(text.strip())
    except ValueError:
        return None


def newest(rows: QuerySet[Any], count: int) -> QuerySet[Any]:
    """The ids of the newest rows, for a search that must not read the whole table."""
    return rows.order_by("-pk").values("pk")[:count]


def first_id_at(at: datetime) -> UUID:
    """The smallest time-ordered id of that millisecond: the primary key serves as a time index."""
    return UUID(int=int(at.timestamp() * 1000) << 80)


def seconds(span: timedelta | None) -> str:
    """`0.042 s`, `61.5 s`, `2 h 3 min`."""
    if span is None:
        return EMPTY
    total = span.total_seconds()
    if total < 10:
        return f"{total:.3f} s"
    if total < 600:
        return f"{total:.1f} s"
    return rough(span)


def rough(span: timedelta, *, units: int = 2) -> str:
    """The greatest units: `3 d 4 h`, `5 min 2 s`, `0 s`."""
    left = max(0, round(span.total_seconds()))
    said: list[str] = []
    for unit, size in UNITS:
        number, left = divmod(left, size)
        if number or said:
            said.append(f"{number} {unit}" if number else "")
    return " ".join(filter(None, said[:units])) or "0 s"


def since(start: datetime | None, end: datetime | None) -> timedelta | None:
    return None if start is None or end is None else end - start


def moment(at: datetime) -> str:
    """To the millisecond, in the current time zone."""
    local = timezone.localtime(at)
    return f"{local:%Y-%m-%d %H:%M:%S}.{local.microsecond // 1000:03} {local:%Z}"


def age(at: datetime, *, units: int = 2) -> SafeString:
    """How long ago; the moment itself when pointed at."""
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        at.isoformat(),
        moment(at),
        f"{rough(timezone.now() - at, units=units)} ago",
    )


def link(url: str, text: object, *, title: str = "") -> SafeString:
    return format_html('<a class="koda-id" href="{}" title="{}">{}</a>', url, title, text)


def tail(id: UUID) -> str:
    """The end of a time-ordered id: what tells it from its neighbours."""
    return f"…{str(id)[-8:]}"


def cut(text: str, longest: int) -> str:
    """The text, or its beginning and how long it is."""
    if len(text) <= longest:
        return text
    return f"{text[:longest]}… ({len(text):,} characters)"
