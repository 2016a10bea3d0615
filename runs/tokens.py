"""API tokens: keys for programs. The key is shown once; the table keeps its hash.

A key has 256 random bits, so that a plain hash is enough: there is nothing to guess.
"""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser
from django.db.models import BooleanField, ExpressionWrapper, Q, QuerySet
from django.db.models.expressions import Combinable
from django.db.models.functions import Now

from runs.models import ApiToken
from runs.prepared import Prepared

PREFIX = "koda_"
"""Makes a key that leaked recognisable to scanners."""

TOUCH_INTERVAL = timedelta(minutes=1)
"""`last_used_at` is this exact: writing it for every request would cost more than it tells."""


def issue(
    user: AbstractBaseUser,
    *,
    name: str = "",
    can_write: bool = True,
    expires_at: datetime | Combinable | None = None,
) -> str:
    """Make a token and return its key, which cannot be had again.

    `expires_at` may be an expression, so that the database's clock counts.
    """
    token = ApiToken(user_id=user.pk, name=name, can_write=can_write, expires_at=expires_at)
    key = seal(token)
    token.save(force_insert=True)
    return key


def seal(token: ApiToken) -> str:
    """Give a token that is not saved yet its key, and return it."""
    key = PREFIX + secrets.token_urlsafe(32)
    token.hash = _hash(key)
    return key


def find(key: str) -> ApiToken | None:
    """The token with this key; None for an unknown or expired one, or if its user may not sign in.

    Notes that it was used.
    """
    found: Any = _VALID.first(_hash(key))
    if found is None or not found.user.is_active:
        return None
    if found.stale:
        ApiToken.objects.filter(_STALE, pk=found.pk).update(last_used_at=Now())
    return found  # type: ignore[no-any-return]


_STALE = Q(last_used_at=None) | Q(last_used_at__lt=Now() - TOUCH_INTERVAL)


def _valid(key_hash: str) -> QuerySet[Any, Any]:
    valid = Q(expires_at=None) | Q(expires_at__gt=Now())
    return (
        ApiToken.objects.filter(valid, hash=key_hash)
        .annotate(stale=ExpressionWrapper(_STALE, output_field=BooleanField()))
        .select_related("user")
        .only("can_write", "user")  # and all of the user: what one is, is not ours to know
    )


_VALID = Prepared(_valid, str)


def _hash(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
