"""API tokens: whose they are and when they were used last. To revoke one is to delete it."""

from __future__ import annotations

from django.contrib import admin, messages
from django.contrib.auth import get_user_model
from django.forms import ModelForm
from django.http import HttpRequest
from django.utils.safestring import SafeString

from runs import tokens
from runs.admin import parts
from runs.admin.parts import EMPTY, BoundedList
from runs.models import ApiToken


@admin.register(ApiToken)
class ApiTokenAdmin(BoundedList):
    list_display = ("token", "user", "can_write", "created", "expires_at", "last_used")
    list_select_related = ("user",)
    search_fields = ("name",)
    fields = ("user", "name", "can_write", "created_at", "expires_at", "last_used_at")
    readonly_fields = ("created_at", "last_used_at")

    def get_search_fields(self, request: HttpRequest) -> list[str]:
        return [*self.search_fields, f"user__{get_user_model().USERNAME_FIELD}"]

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def save_model(
        self, request: HttpRequest, obj: ApiToken, form: ModelForm[ApiToken], change: bool
    ) -> None:
        """A new token. The key is told here and never again."""
        key = tokens.seal(obj)
        super().save_model(request, obj, form, change)
        told = f"The key is {key} — copy it now, it is shown this once."
        self.message_user(request, told, messages.WARNING)

    @admin.display(description="token")
    def token(self, token: ApiToken) -> str:
        return str(token)

    @admin.display(description="created")
    def created(self, token: ApiToken) -> SafeString:
        return parts.age(token.created_at)

    @admin.display(description="last used")
    def last_used(self, token: ApiToken) -> SafeString | str:
        return parts.age(token.last_used_at) if token.last_used_at else EMPTY
