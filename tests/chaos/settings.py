"""The settings of the processes under chaos: the ordinary ones, with a layer that can misbehave."""

import os

from koda.settings import *  # noqa: F403
from koda.settings import CHANNEL_LAYERS

CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "tests.chaos.layer.SwitchedLayer",
        "CONFIG": {
            "inner": CHANNEL_LAYERS["default"],
            "seed": int(os.environ["CHAOS_SEED"]),
            "switch": os.environ["CHAOS_SWITCH"],
        },
    }
}
