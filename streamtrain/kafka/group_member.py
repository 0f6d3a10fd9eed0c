"""A member of a consumer group for the partitions' sake: it has its share of them, and reads nothing.

Kafka's group protocol says who is there, who has what, and who has gone.
"""

from __future__ import annotations

from collections.abc import Mapping

from streamtrain.closing import Closing
from streamtrain.kafka.clients import KafkaConsumer
from streamtrain.kafka.settings import Purpose


class GroupMember(Closing):
    """Joins `group` for partitions of `topic`. One thread at a time."""

    def __init__(self, kafka: Mapping[str, object], group: str, topic: str) -> None:
        self._consumer = KafkaConsumer.open(Purpose.HOST, kafka, group)
        self._consumer.native.subscribe(topic, reads=False)

    def look(self) -> frozenset[int]:
        """Returns the partitions that this member has now. One that does not look for ten seconds loses them all."""
        self._consumer.consume(1, 0.0)
        self._consumer.hear()
        return frozenset(self._consumer.native.assignment())

    def close(self) -> None:
        """Leaves the group: the others have its partitions at once."""
        self._consumer.close()
