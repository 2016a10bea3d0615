from importlib import import_module

from django.apps import AppConfig


class RunsConfig(AppConfig):
    name = "runs"
    label = "koda_runs"
    verbose_name = "Koda runs"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the system checks."""
        import_module("runs.checks")
