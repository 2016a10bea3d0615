"""What an operator may do to runs: through the services, by POST, with the permission for it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from uuid import UUID

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import redirect
from django.urls import URLPattern, path, reverse

from runs import services
from runs.admin.filters import IS_OPEN
from runs.errors import KodaError, NotFound, NotRegenerable
from runs.models import Run

MOST = 500
"""Runs that one press of the button changes: each is a transaction of its own."""

REASON = "operator"
"""Stored and shown as why a run was cancelled."""

PERMISSION = "koda_runs.operate_run"


class Operations(admin.ModelAdmin):  # type: ignore[type-arg]
    """Actions of the list and buttons of the page."""

    def has_operate_permission(self, request: HttpRequest) -> bool:
        user = request.user
        return user.is_active and user.has_perm(PERMISSION) and self.has_view_permission(request)

    def operation_urls(self) -> list[URLPattern]:
        site = self.admin_site
        return [
            path(
                "<uuid:run_id>/cancel/",
                site.admin_view(self.cancel_view),
                name="koda_runs_run_cancel",
            ),
            path(
                "<uuid:run_id>/regenerate/",
                site.admin_view(self.regenerate_view),
                name="koda_runs_run_regenerate",
            ),
        ]

    # The page -------------------------------------------------------------------------------

    def cancel_view(self, request: HttpRequest, run_id: UUID) -> HttpResponse:
        return self._operate(request, run_id, self._cancel)

    def regenerate_view(self, request: HttpRequest, run_id: UUID) -> HttpResponse:
        return self._operate(request, run_id, self._regenerate)

    def _operate(
        self, request: HttpRequest, run_id: UUID, operation: Callable[[HttpRequest, UUID], Run]
    ) -> HttpResponse:
        """Do it and show the run it leads to."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not self.has_operate_permission(request):
            raise PermissionDenied
        try:
            run = operation(request, run_id)
        except KodaError as error:
            self.message_user(request, f"Refused: {error}.", messages.ERROR)
            run = Run(pk=run_id)
        return redirect(reverse("admin:koda_runs_run_change", args=[run.pk]))

    def _cancel(self, request: HttpRequest, run_id: UUID) -> Run:
        run = services.cancel(run_id, reason=REASON)
        if self._noted(request, run):
            self.message_user(request, "The run is cancelled.", messages.SUCCESS)
        else:
            self.message_user(request, f"The run was {run.status} already.", messages.WARNING)
        return run

    def _regenerate(self, request: HttpRequest, run_id: UUID) -> Run:
        run = self._regenerated(request, run_id)
        self.message_user(request, "This run answers the turn anew.", messages.SUCCESS)
        return run

    # The list -------------------------------------------------------------------------------

    @admin.action(description="Cancel selected runs", permissions=["operate"])
    def cancel_selected(self, request: HttpRequest, queryset: QuerySet[Run]) -> None:
        """What is over already stays as it is."""
        self._operate_on_all(
            request,
            queryset.filter(IS_OPEN),
            self._cancelled,
            done="Runs cancelled",
            none="None of these runs is open.",
        )

    @admin.action(description="Regenerate selected runs", permissions=["operate"])
    def regenerate_selected(self, request: HttpRequest, queryset: QuerySet[Run]) -> None:
        """The last turn of each conversation, where it is over; the others stay as they are."""
        self._operate_on_all(
            request,
            queryset.exclude(IS_OPEN),
            self._regenerated,
            done="Runs answered anew",
            none="None of these runs is a last turn that is over.",
        )

    def _operate_on_all(
        self,
        request: HttpRequest,
        runs: QuerySet[Run],
        operation: Callable[[HttpRequest, UUID], Run | None],
        *,
        done: str,
        none: str,
    ) -> None:
        chosen = list(runs.values_list("pk", flat=True)[: MOST + 1])
        count = 0
        for run_id in chosen[:MOST]:
            with suppress(NotFound, NotRegenerable):  # it moved on meanwhile
                count += operation(request, run_id) is not None
        if count:
            self.message_user(request, f"{done}: {count}.", messages.SUCCESS)
        else:
            self.message_user(request, none, messages.WARNING)
        if len(chosen) > MOST:
            self.message_user(request, "There are more: do it again.", messages.WARNING)

    def _cancelled(self, request: HttpRequest, run_id: UUID) -> Run | None:
        """The run, if it was an operator that stopped it. Raises NotFound."""
        run = services.cancel(run_id, reason=REASON)
        return run if self._noted(request, run) else None

    def _noted(self, request: HttpRequest, run: Run) -> bool:
        if run.finish_reason != REASON:
            return False
        self.log_change(request, run, "Cancelled.")
        return True

    def _regenerated(self, request: HttpRequest, run_id: UUID) -> Run:
        """The run that answers anew. Raises NotFound and NotRegenerable."""
        run = services.regenerate(run_id)
        self.log_change(request, Run(pk=run_id), f"Answered anew by {run.pk}.")
        return run
