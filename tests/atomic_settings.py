"""The project's settings with a transaction around every request, as a project around it may have.

Views that stream are exempt by themselves.
"""

from copy import deepcopy

from koda.settings import *  # noqa: F403
from koda.settings import DATABASES

DATABASES = deepcopy(DATABASES)
DATABASES["default"]["ATOMIC_REQUESTS"] = True
