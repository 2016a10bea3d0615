"""Django settings. Everything that varies comes from the environment, through `koda.env`."""

from pathlib import Path
from typing import Any

from django.core.management.utils import get_random_secret_key

from koda import env
from runs import conf

BASE_DIR = Path(__file__).resolve().parent.parent

REDIS_URL = env.redis_url()
EMBEDDED = REDIS_URL is None

DEBUG = env.flag("DJANGO_DEBUG", default=False)
SECRET_KEY = env.secret_key(BASE_DIR, fallback=get_random_secret_key)
ALLOWED_HOSTS = env.hosts()

KODA = conf.load(allow_anonymous=EMBEDDED)
KODA_PUBLISH = "streaming.groups.ChannelPublisher"

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "corsheaders",
    "ninja",  # the files of the API's docs page
    "runs",
    "streaming",
    "koda",
]

MIDDLEWARE = [
    "corsheaders.middleware.CorsMiddleware",  # outermost: refusals need its headers as well
    "runs.problems.problems",
    "django.middleware.security.SecurityMiddleware",
    "koda.csp.content_security_policy",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "koda.urls"
ASGI_APPLICATION = "koda.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

DATABASES = {"default": env.database(BASE_DIR, lease=KODA.lease)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_TIMEOUTS = {"socket_connect_timeout": 1, "socket_timeout": 1}

if REDIS_URL is None:
    CHANNEL_LAYERS: dict[str, Any] = {
        "default": {
            "BACKEND": "channels.layers.InMemoryChannelLayer",
            "CONFIG": {"capacity": 10_000},
        }
    }
    CACHES: dict[str, Any] = {
        "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}
    }
else:
    CHANNEL_LAYERS = {
        "default": {
            "BACKEND": "streaming.layer.PipelinedPubSubLayer",
            "CONFIG": {
                "hosts": [{"address": REDIS_URL, "max_connections": 50, **REDIS_TIMEOUTS}],
                "prefix": "koda",
            },
        }
    }
    CACHES = {
        "default": {
            "BACKEND": "django_redis.cache.RedisCache",
            "LOCATION": REDIS_URL,
            "KEY_PREFIX": "koda",
            "OPTIONS": {"CONNECTION_POOL_KWARGS": {"max_connections": 50, **REDIS_TIMEOUTS}},
        }
    }

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]

LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]  # what koda/locale has
TIME_ZONE = "UTC"
USE_I18N = True
USE_TZ = True

STATIC_URL = "/static/"
STATIC_ROOT = BASE_DIR / "staticfiles"

SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_HTTPONLY = True
CSRF_COOKIE_SAMESITE = "Lax"
CSRF_TRUSTED_ORIGINS = env.origins("DJANGO_CSRF_TRUSTED_ORIGINS")

# Pages of other origins come with a token, never with cookies.
CORS_ALLOWED_ORIGINS = env.origins("KODA_CORS_ORIGINS")
CORS_URLS_REGEX = r"^/api/"
CORS_ALLOW_HEADERS = ["authorization", "content-type", "idempotency-key", "last-event-id"]
CORS_EXPOSE_HEADERS = ["retry-after"]

DATA_UPLOAD_MAX_MEMORY_SIZE = 1_048_576

TLS = env.flag("DJANGO_TLS", default=False)
if TLS:  # a proxy speaks https to the world and plain HTTP to us
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SECURE_SSL_REDIRECT = True
    SECURE_REDIRECT_EXEMPT = [r"^(healthz|readyz|metrics)$"]  # asked from inside, without the proxy
    SESSION_COOKIE_SECURE = True
    CSRF_COOKIE_SECURE = True
    SECURE_HSTS_SECONDS = 30 * 24 * 3600  # a mistake is over in a month
    # Subdomains and browsers' preload lists are for the owner of the whole domain to decide.
    SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "loggers": {
        "runs": {"handlers": ["stderr"], "level": "INFO", "propagate": True},
        "streaming": {"handlers": ["stderr"], "level": "INFO", "propagate": True},
        "koda": {"handlers": ["stderr"], "level": "INFO", "propagate": True},
        # Without this an error in a view is mailed to the admins, and there are none.
        "django": {"handlers": ["stderr"], "level": "WARNING", "propagate": True},
        "django.request": {"level": "ERROR"},
        "uvicorn": {"handlers": ["stderr"], "level": "INFO", "propagate": True},
        "uvicorn.access": {"level": "WARNING"},
    },
}
