from importlib import import_module

from django.apps import AppConfig


class StreamingConfig(AppConfig):
    name = "streaming"
    label = "koda_streaming"
    verbose_name = "Koda streaming"

    def ready(self) -> None:
        """Register the system checks."""
        import_module("streaming.checks")
