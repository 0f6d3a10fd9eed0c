"""Reading to an end that never comes is said; reading without one waits."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Producer

from streamtrain.errors import KafkaUnreachable
from streamtrain.kafka import reader as reading
from streamtrain.kafka.admin import Admin
from streamtrain.kafka.clients import KafkaConsumer
from streamtrain.kafka.settings import Purpose
from streamtrain.topics.topic import TopicWish


@pytest.fixture
def topic(kafka: Any) -> str:
    """Three messages in the first of two partitions, one in the other."""
    name = str(kafka.fresh_name("reading"))
    Admin(kafka.bootstrap).ensure([TopicWish("x", name, 2)])
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for partition, value in ((0, b"a"), (0, b"b"), (0, b"c"), (1, b"d")):
        producer.produce(name, value, partition=partition)
    assert producer.flush(60) == 0
    return name


def consumer(kafka: Any) -> KafkaConsumer:
    return KafkaConsumer.open(Purpose.READ, {"bootstrap.servers": kafka.bootstrap}, "reading")


def test_from_starts_to_ends(kafka: Any, topic: str) -> None:
    with consumer(kafka) as asked:
        found = [message.value for message in reading.read_all(asked, topic, {0: (1, 2), 1: (0, 1)})]
        assert sorted(found) == [b"b", b"d"]
        assert list(reading.read_all(asked, topic, {0: (3, 3), 1: (1, 1)})) == []


def test_an_end_that_is_not_reached_is_said(kafka: Any, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "TIMEOUT_S", 1.0)
    looks = iter([False] * 600)  # a minute
    with consumer(kafka) as asked, pytest.raises(KafkaUnreachable, match=r"up to offset 9 of partition 0, no"):
        list(reading.read_all(asked, topic, {0: (0, 9), 1: (0, 1)}, lambda: next(looks, True)))


def test_without_ends_it_waits_until_it_is_stopped(kafka: Any, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "TIMEOUT_S", 0.1)
    looks = iter([False] * 20)
    with consumer(kafka) as asked:
        read = reading.read_all(asked, topic, {0: (0, None), 1: (0, None)}, lambda: next(looks, True))
        found = [message.value for message in read]
    assert sorted(value or b"" for value in found) == [b"a", b"b", b"c", b"d"]


def test_one_partition_to_its_end_beside_one_read_for_ever(
    kafka: Any, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "TIMEOUT_S", 1.0)
    looks = iter([False] * 30)
    with consumer(kafka) as asked:
        read = reading.read_all(asked, topic, {0: (1, 2), 1: (0, None)}, lambda: next(looks, True))
        assert sorted(message.value or b"" for message in read) == [b"b", b"d"]
