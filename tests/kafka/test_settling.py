"""A broker that is settling, or knows less than it did, says nothing of what a topic holds: it is not empty."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaError
from publisher import Publisher

from streamtrain import _native
from streamtrain._native import KafkaCode
from streamtrain.kafka.clients import Message
from streamtrain.kafka.snapshots import SnapshotTopic

MODEL = bytes(1000)


@pytest.fixture
def job(kafka: Any) -> str:
    return str(kafka.fresh_name("settling"))


@pytest.fixture
def publisher(kafka: Any, job: str) -> Publisher:
    return Publisher(kafka.bootstrap, job)


@pytest.fixture
def topic(kafka: Any, job: str) -> Iterator[SnapshotTopic]:
    with SnapshotTopic(job, kafka.bootstrap) as opened:
        yield opened


class Leaderless:
    """A consumer that is told `code` for the first questions."""

    def __init__(self, real: Any, code: int) -> None:
        self._real, self._code, self.refusals = real, code, 3

    def bounds(self, *arguments: Any) -> Any:
        self.refusals -= 1
        if self.refusals >= 0:
            raise self._real.explain(_native.KafkaFailure(self._code, "topic: it says"))
        return self._real.bounds(*arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


@pytest.mark.parametrize(
    "code",
    [
        KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE, KafkaError._UNKNOWN_PARTITION,
        KafkaError._UNKNOWN_TOPIC, KafkaError.UNKNOWN_TOPIC_OR_PART,
    ],
)  # fmt: skip
def test_a_broker_that_takes_up_its_partitions_is_waited_for(
    topic: SnapshotTopic, publisher: Publisher, code: int
) -> None:
    publisher.put(1, MODEL)
    topic._clients.client = Leaderless(topic._clients.client, code)  # type: ignore[assignment]
    found = topic.newest_manifest()
    assert found is not None and found.manifest.version == 1


def test_an_end_before_the_end_is_no_end(topic: SnapshotTopic, publisher: Publisher) -> None:
    """A broker that has just come back may say that the topic ends where it did a while ago."""
    publisher.put(1, MODEL)
    low, end = topic.bounds()
    client = topic._clients.client
    consume, told = client.consume, []

    def short(capacity: int, timeout_s: float) -> list[Message]:
        if not told:
            told.append(True)
            return [Message(0, low, -1, None, None, [], KafkaCode.PARTITION_EOF, "")]
        return consume(capacity, timeout_s)

    client.consume = short  # type: ignore[method-assign]
    assert [message.key for message in topic.window(low, end)] != []
