"""What the tests of the admin share."""

from django.test import Client
from django.urls import reverse

from runs.models import Run

HOSTILE = "<script>alert(1)</script>"
LIST = reverse("admin:koda_runs_run_changelist")
OVERVIEW = reverse("admin:koda_runs_run_overview")


def page_url(run: Run) -> str:
    return reverse("admin:koda_runs_run_change", args=[run.pk])


def text(client: Client, url: str, **query: object) -> str:
    answer = client.get(url, query)
    assert answer.status_code == 200
    return answer.content.decode()
