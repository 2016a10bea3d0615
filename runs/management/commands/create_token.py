"""manage.py create_token"""

from datetime import timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db.models.functions import Now

from runs import tokens


class Command(BaseCommand):
    help = "Print a new API token, alone on one line, once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user")
        parser.add_argument("--create-user", action="store_true", help="if there is none yet")
        parser.add_argument("--name", default="", help="what it is for")
        parser.add_argument("--read-only", action="store_true")
        parser.add_argument("--days", type=float, help="days until it expires; for ever without")

    def handle(
        self,
        *,
        user: str,
        create_user: bool,
        name: str,
        read_only: bool,
        days: float | None,
        **options: Any,  # noqa: ANN401
    ) -> None:
        if days is not None and days <= 0:
            raise CommandError("--days must be more than 0")
        model: Any = get_user_model()
        owner = model.objects.filter(**{model.USERNAME_FIELD: user}).first()
        if owner is None and not create_user:
            raise CommandError(f"There is no user {user!r}; --create-user makes one.")
        if owner is None:
            owner = model(**{model.USERNAME_FIELD: user})
            owner.set_unusable_password()
            owner.save()
        expires_at = None if days is None else Now() + timedelta(days=days)
        key = tokens.issue(owner, name=name, can_write=not read_only, expires_at=expires_at)
        self.stdout.write(key)
