"""The configured agents, for commands that run a worker."""

from django.core.management.base import CommandError

from runs import conf
from runs.agents.registry import AgentConfigError, LoadedAgent, load_agents


def configured_agents() -> dict[str, LoadedAgent]:
    """Raises CommandError with the sentence that says what is wrong with one."""
    try:
        return load_agents(conf.get().agents)
    except AgentConfigError as error:
        raise CommandError(str(error)) from None
