"""The lag of a consumer group in a topic, seen from outside: joins no group and commits nothing."""

from __future__ import annotations

from collections.abc import Mapping

from streamtrain import _native
from streamtrain._native import KafkaResponse
from streamtrain.kafka.clients import KafkaConsumer
from streamtrain.kafka.error_codes import response_to
from streamtrain.kafka.renewing import Renewing
from streamtrain.kafka.settings import Purpose


class GroupLag:
    """A consumer with the group's name: an administration client that has lost a group's coordinator once asks it no
    more (librdkafka 2.16)."""

    def __init__(self, kafka: Mapping[str, object], group: str, topic: str, timeout_s: float) -> None:
        self._topic = topic
        self._timeout_ms = int(timeout_s * 1000)
        self._clients = Renewing(lambda: KafkaConsumer.open(Purpose.GROUP, kafka, group))

    def ask(self) -> dict[int, int]:
        """Offsets the group has not passed yet, by partition; none where there is no such topic.

        Raises KafkaUnreachable where no broker answers, StreamtrainError for what else Kafka says.
        """
        return self._clients.ask(self._answer)

    def _answer(self, consumer: KafkaConsumer) -> dict[int, int]:
        try:
            bounds = consumer.native.bounds(self._topic, self._timeout_ms)
            consumer.assign(self._topic, [])
            passed = consumer.native.committed(list(range(len(bounds))), self._timeout_ms)
        except _native.KafkaFailure as failure:
            if response_to(failure.args[0]) is KafkaResponse.MISSING:
                return {}
            raise consumer.explain(failure) from None
        finally:
            consumer.hear()
        consumer.answered()
        return {partition: max(0, bounds[partition][1] - max(bounds[partition][0], at)) for partition, at in passed}
