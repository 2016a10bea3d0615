"""The same readers in front of daphne: order, completeness and resume are the gateway's own.

What daphne cannot do stands in docs/reliability.md.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from tests.live import Launcher, System
from tests.live_databases import Databases
from tests.test_live_streams import (  # noqa: F401 - collected here, with the fixture below
    test_a_last_id_beyond_the_log_is_refused,
    test_a_run_that_is_over_answers_204_once_everything_was_received,
    test_hostile_text_arrives_as_text,
    test_the_stream_of_a_pending_run_opens_within_a_second,
    test_wherever_a_reader_of_a_finished_run_is_cut_the_two_parts_are_the_log,
    test_wherever_a_reader_of_a_live_run_is_cut_the_two_parts_are_the_log,
)
from tests.test_live_watchers import (  # noqa: F401
    test_a_run_goes_on_when_everybody_has_left,
    test_many_joining_a_fast_run_at_any_moment_see_all_of_it,
    test_two_watchers_and_a_late_third_see_what_is_stored,
)


@pytest.fixture(scope="module")
def live(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    with contextlib.closing(Launcher(databases, tmp_path_factory.mktemp)) as launcher:
        # Without Redis the two are as quick as the sweep.
        yield launcher(split=True, daphne=True, KODA_SWEEP_INTERVAL="0.2")
