"""How far a consumer group is behind in a topic, seen from outside: joins no group and commits nothing."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from streamtrain.kafka.consumer import flat_settings
from streamtrain.kafka.errors import Heard, explain
from streamtrain.kafka.renewing import Renewing

log = logging.getLogger("streamtrain.kafka")

_OWNED = {"enable.auto.commit": "false", "isolation.level": "read_committed", "check.crcs": "true"}
_DEFAULTS = {"reconnect.backoff.max.ms": "1000"}  # a broker that is back is heard of within a second


class GroupLag:
    """A consumer with the group's name: an administration client that has lost a group's coordinator once asks it no
    more (librdkafka 2.16)."""

    def __init__(self, kafka: Mapping[str, object], group: str, topic: str, timeout_s: float) -> None:
        self._topic = topic
        self._timeout_s = timeout_s
        self._heard = Heard()
        settings: dict[str, Any] = {
            **_DEFAULTS, **flat_settings(kafka), **_OWNED, "group.id": group, "error_cb": self._heard,
        }  # fmt: skip
        self._bootstrap = str(settings["bootstrap.servers"])
        self._clients = Renewing(lambda: Consumer(settings, logger=log))

    def ask(self) -> dict[int, int]:
        """Offsets the group has not passed yet, by partition; none where there is no such topic.

        Raises KafkaUnreachable where no broker answers, StreamtrainError for what else Kafka says.
        """
        return self._clients.ask(self._answer)

    def _answer(self, consumer: Consumer) -> dict[int, int]:
        try:
            known = consumer.list_topics(self._topic, timeout=self._timeout_s).topics[self._topic].partitions
            asked = [TopicPartition(self._topic, number) for number in known]
            passed = consumer.committed(asked, timeout=self._timeout_s) if asked else []
            behind = {part.partition: self._behind(consumer, part) for part in passed}
        except KafkaException as error:
            consumer.poll(0)  # hears what came beside the answers
            raise explain(error.args[0], f"topic {self._topic}", self._bootstrap, self._heard) from None
        self._heard.clear()
        return behind

    def _behind(self, consumer: Consumer, passed: TopicPartition) -> int:
        bounds = consumer.get_watermark_offsets(passed, timeout=self._timeout_s)
        low, end = bounds if bounds is not None else (0, 0)
        return max(0, end - max(low, passed.offset))
