from django.apps import AppConfig


class KodaConfig(AppConfig):
    name = "koda"
    label = "koda"
    verbose_name = "Koda"
