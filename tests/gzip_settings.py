"""The project's settings with compressing middleware, as a project around it may have."""

from koda.settings import *  # noqa: F403
from koda.settings import MIDDLEWARE as OURS

MIDDLEWARE = ["django.middleware.gzip.GZipMiddleware", *OURS]
