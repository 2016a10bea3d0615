"""The channel layer for Redis: publish/subscribe, with a whole flush in one round trip."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from channels_redis.pubsub import RedisPubSubChannelLayer

Message = dict[str, Any]


class PipelinedPubSubLayer(RedisPubSubChannelLayer):  # type: ignore[misc]
    """RedisPubSubChannelLayer that sends to many groups in one pipeline for each shard.

    The layer's own `group_send` awaits one PUBLISH at a time under a lock that subscriptions
    share; at some thousand messages a second that is what limits a worker.
    """

    async def group_send_many(self, messages: Sequence[tuple[str, Message]]) -> None:
        """Send each (group, message); order within a group is kept. Raises redis errors."""
        layer = self._get_layer()
        by_shard: defaultdict[Any, list[tuple[str, bytes]]] = defaultdict(list)
        for group, message in messages:
            channel = layer._get_group_channel_name(group)  # noqa: SLF001
            by_shard[layer._get_shard(channel)].append((channel, self.serialize(message)))  # noqa: SLF001
        for shard, batch in by_shard.items():
            shard._ensure_redis()  # noqa: SLF001
            async with shard._redis.pipeline(transaction=False) as pipeline:  # noqa: SLF001
                for channel, body in batch:
                    pipeline.publish(channel, body)
                await pipeline.execute()
