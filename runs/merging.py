"""When a new message joins the run in progress instead of starting another one.

People correct themselves within moments. A message that arrives while the answer is being
written, and soon enough after the question, belongs to that question.
"""

from datetime import timedelta

from runs.states import Status

JOINABLE = frozenset({Status.RUNNING, Status.STREAMING})
"""A pending run is left out on purpose: it has read nothing yet, and queues in order."""


def should_merge(*, status: Status, age: timedelta, window: timedelta, newest: bool) -> bool:
    """The rule as a pure function of the run's state.

    `age` is the time since the run was created, by the database's clock. The database decides
    (`RunManager.add_input` says the same in SQL); one table of test cases holds both equal.
    """
    return newest and status in JOINABLE and age < window
