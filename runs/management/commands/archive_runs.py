"""manage.py archive_runs"""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from runs import conf, retention


class Command(BaseCommand):
    help = (
        "Collapse the logs of runs that have been over for longer than KODA_FRAGMENT_RETENTION. "
        "Workers do this by themselves."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="only say what there is to do")

    def handle(self, *, dry_run: bool, **options: Any) -> None:  # noqa: ANN401
        age = conf.get().fragment_retention_delta
        if dry_run:
            found = retention.outlook(age)
            self.stdout.write(f"{found.runs} runs to archive: up to {found.events} rows less.")
            return
        runs = events = 0
        while (done := retention.archive(age)).runs:
            runs, events = runs + done.runs, events + done.events
        self.stdout.write(f"{runs} runs archived: {events} rows less.")
