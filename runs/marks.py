"""The rerun mark: a control signal in the cache that tells a worker of a correction.

Its value is the run's new number of inputs and its key expires with the merge window; it is never
deleted, so that a hit is simply *value > inputs consumed*. Losing it costs time, not the
correction: a run cannot end while it has inputs that its worker has not read.
"""

import logging
from collections.abc import Collection
from uuid import UUID

from django.core.cache import cache

from runs import conf

logger = logging.getLogger(__name__)


def _key(run_id: UUID) -> str:
    return f"koda.rerun.{run_id}"


def set_mark(run_id: UUID, input_count: int) -> None:
    """Leave the mark. A cache that is down is logged and otherwise ignored."""
    try:
        cache.set(_key(run_id), input_count, timeout=conf.get().merge_window)
    except Exception:
        logger.warning("rerun mark of run %s not set", run_id, exc_info=True)


def read_marks(run_ids: Collection[UUID]) -> dict[UUID, int]:
    """The marks of these runs, in one round trip. A cache that is down has none."""
    keys = {_key(run_id): run_id for run_id in run_ids}
    try:
        found = cache.get_many(keys)
    except Exception:
        logger.warning("rerun marks not read", exc_info=True)
        return {}
    return {keys[key]: int(count) for key, count in found.items()}
