"""The settings of the gateway and the worker under test: those in force, with a few replaced.

The environment names the settings module to start from, the database to use and the prefix that
keeps these processes apart from all others on the same Redis.
"""

import os
from copy import deepcopy
from importlib import import_module

from django.conf import global_settings

from runs.conf import KodaSettings

SEED = 19
"""Which events the channel layer loses, repeats and holds back."""

_base = import_module(os.environ["SELFCHECK_SETTINGS"])
globals().update({name: getattr(_base, name) for name in dir(_base) if name.isupper()})

ALLOWED_HOSTS = ["127.0.0.1"]
SECURE_SSL_REDIRECT = False

DATABASES = deepcopy(_base.DATABASES)
DATABASES["default"]["NAME"] = os.environ["SELFCHECK_DATABASE"]

CACHES = deepcopy(getattr(_base, "CACHES", global_settings.CACHES))
CACHES["default"]["KEY_PREFIX"] = os.environ["SELFCHECK_PREFIX"]

_layer = deepcopy(_base.CHANNEL_LAYERS["default"])
if not _layer["BACKEND"].endswith("InMemoryChannelLayer"):
    _layer.setdefault("CONFIG", {})["prefix"] = os.environ["SELFCHECK_PREFIX"]
CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "koda.selfcheck.layer.DisorderlyLayer",
        "CONFIG": {"inner": _layer, "seed": SEED},
    }
}

# Our own values: the promises are checked, not somebody's tuning. Short waits keep it quick.
KODA = KodaSettings(allow_anonymous=True, gap_wait=0.3, sweep_interval=0.5, drain_timeout=0.1)

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": "INFO"},
}
