"""How many messages one owner may send in a minute."""

import logging

from django.core.cache import cache
from django.http import HttpRequest
from ninja.throttling import BaseThrottle

from runs import conf
from runs.api.access import owner_of

logger = logging.getLogger(__name__)

MINUTE = 60


class MessageRate(BaseThrottle):
    """Counts in the cache, so that gateways count together; the count's expiry is the minute.

    Adding up is one step there: requests in parallel cannot all take the last place. A cache that
    is away lets everybody through.
    """

    def allow_request(self, request: HttpRequest) -> bool:
        key = f"koda.rate.{owner_of(request).name}"
        try:
            cache.add(key, 0, timeout=MINUTE)
            sent: int = cache.incr(key)
        except Exception as error:  # noqa: BLE001 - whatever ails the cache, messages go through
            logger.warning("messages are not counted: %s", type(error).__name__)
            return True
        return sent <= conf.get().messages_per_minute

    def wait(self) -> float:
        """Seconds until the count has expired, whenever it began."""
        return MINUTE
