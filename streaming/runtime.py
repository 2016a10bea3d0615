"""The gateway of this process: one hub, one replay, made on first use of an event loop."""

import asyncio
from weakref import WeakKeyDictionary

from runs import conf
from streaming.gateway import Gateway
from streaming.hub import Hub
from streaming.line import LineSettings
from streaming.replay import Replay
from streaming.snapshots import Snapshots

_gateways: WeakKeyDictionary[asyncio.AbstractEventLoop, Gateway] = WeakKeyDictionary()


def gateway() -> Gateway:
    """The gateway of the running event loop. Works under any ASGI server, embedded or alone."""
    loop = asyncio.get_running_loop()
    found = _gateways.get(loop)
    if found is None:
        found = _gateways[loop] = _make()
    return found


def _make() -> Gateway:
    settings = conf.get()
    replay = Replay()
    hub = Hub(progress=replay.progress, sweep_interval=settings.sweep_interval)
    hub.start()
    return Gateway(
        hub=hub,
        read=replay.log,
        snapshots=Snapshots(cap=settings.replay_cap, extend=replay.extend),
        settings=LineSettings(settings.ping_interval, settings.gap_wait, settings.orderer_cap),
    )
