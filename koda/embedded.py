"""A worker inside a process that does something else as well."""

from collections.abc import Mapping

from runs import conf, ports
from runs.agents.registry import LoadedAgent
from runs.worker import Worker, worker_name

DRAIN = 5.0
"""Seconds that running answers get when the one process is told to stop; the next start goes on."""


def embedded_worker(name: str, agents: Mapping[str, LoadedAgent]) -> Worker:
    settings = conf.get()
    hurried = {"drain_timeout": min(DRAIN, settings.drain_timeout)}
    return Worker(
        name=worker_name(name),
        agents=agents,
        port=ports.port(),
        settings=settings.model_copy(update=hurried),
    )
