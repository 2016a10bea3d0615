"""What a measuring script sees of a gateway from outside, and how it says what it found."""

from __future__ import annotations

import httpx
import psutil
import redis

from tests.live import System


class Gateway:
    """What can be seen of the process from outside."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._process = psutil.Process(system.gateway.pid)

    @property
    def memory(self) -> int:
        """Bytes resident."""
        return int(self._process.memory_info().rss)

    @property
    def threads(self) -> int:
        return int(self._process.num_threads())

    @property
    def files(self) -> int:
        return int(self._process.num_fds())

    @property
    def cpu(self) -> float:
        """Seconds used."""
        times = self._process.cpu_times()
        return float(times.user + times.system)

    @property
    def connections(self) -> int:
        """To the database."""
        gateway = self._system.gateway
        return self._system.database.connections_of(gateway.pid, gateway.name)

    @property
    def groups(self) -> int:
        """Subscriptions in Redis."""
        if not self._system.redis_url:
            return 0
        with redis.Redis.from_url(self._system.redis_url) as client:
            return len(client.pubsub_channels("*koda.out.*"))

    @property
    def watchers(self) -> int:
        metrics = httpx.get(f"{self._system.gateway.url}/metrics").text.splitlines()
        [value] = [line.split()[1] for line in metrics if line.startswith("koda_watchers ")]
        return round(float(value))


class Report:
    """What was measured, and whether it is within its bounds."""

    def __init__(self, *, bounds: bool) -> None:
        self._bounds = bounds
        self.missed = 0

    def load(self, title: str) -> None:
        print(title)

    def say(self, what: str, value: object) -> None:
        print(f"  {what:44} {value!s:>14}", flush=True)

    def hold(self, what: str, value: object, bound: str, *, good: bool) -> None:
        """A figure that has a bound."""
        if not self._bounds:
            self.say(what, value)
            return
        print(f"  {what:44} {value!s:>14}  {bound}{'' if good else ': MISSED'}", flush=True)
        self.missed += not good
