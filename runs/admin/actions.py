"""What an operator may do to runs: through the services, by POST, with the permission for it."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import redirect
from django.urls import URLPattern, path, reverse

from runs import services
from runs.admin.filters import IS_OPEN
from runs.errors import KodaError, NotFound
from runs.models import Run

MOST = 500
"""Runs that one press of the button cancels: each is a transaction of its own."""

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
        ]

    # The page -------------------------------------------------------------------------------

    def cancel_view(self, request: HttpRequest, run_id: UUID) -> HttpResponse:
        return self._operate(request, run_id, self._cancel)

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
        if run.finish_reason == REASON:
            self.log_change(request, run, "Cancelled.")
            self.message_user(request, "The run is cancelled.", messages.SUCCESS)
        else:
            self.message_user(request, f"The run was {run.status} already.", messages.WARNING)
        return run

    # The list -------------------------------------------------------------------------------

    @admin.action(description="Cancel selected runs", permissions=["operate"])
    def cancel_selected(self, request: HttpRequest, queryset: QuerySet[Run]) -> None:
        """What is over already stays as it is."""
        chosen = list(queryset.filter(IS_OPEN).values_list("pk", flat=True)[: MOST + 1])
        cancelled = sum(self._cancelled(request, run_id) for run_id in chosen[:MOST])
        if cancelled:
            self.message_user(request, f"Runs cancelled: {cancelled}.", messages.SUCCESS)
        else:
            self.message_user(request, "None of these runs is open.", messages.WARNING)
        if len(chosen) > MOST:
            self.message_user(request, "There are more: do it again.", messages.WARNING)

    def _cancelled(self, request: HttpRequest, run_id: UUID) -> bool:
        try:
            run = services.cancel(run_id, reason=REASON)
        except NotFound:
            return False
        if run.finish_reason != REASON:
            return False
        self.log_change(request, run, "Cancelled.")
        return True
