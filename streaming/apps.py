from django.apps import AppConfig


class StreamingConfig(AppConfig):
    name = "streaming"
    label = "koda_streaming"
    verbose_name = "Koda streaming"
