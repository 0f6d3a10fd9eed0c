"""Reading to an end that never comes is an error, reading without one waits; a slow caller loses nothing."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Producer

from streamtrain.errors import KafkaUnreachable
from streamtrain.kafka import reader as reading
from streamtrain.kafka.admin import Admin
from streamtrain.kafka.clients import KafkaConsumer, Message
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


class Consumer:
    """One message a call, up to `last`; then none."""

    def __init__(self, last: int) -> None:
        self._last = last

    def assign(self, topic: str, offsets: list[tuple[int, int]]) -> None:
        self._next = offsets[0][1] if offsets else self._last + 1  # none: it is at its end

    def consume(self, capacity: int, timeout_s: float) -> list[Message]:
        Clock.now_s += timeout_s
        if self._next > self._last:
            return []
        self._next += 1
        return [Message(0, self._next - 1, 0, None, b"", [], 0, "")]


class Clock:
    now_s = 0.0

    @classmethod
    def monotonic(cls) -> float:
        return cls.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "time", Clock)


def read_slowly(consumer: Any) -> list[int]:
    found = []
    for message in reading.read(consumer, "topic", 0, 0, 5):
        found.append(message.offset)
        Clock.now_s += 3600
    return found


def test_a_slow_caller_gets_them_all_and_a_silent_broker_is_an_error(clock: None) -> None:
    """Replay trains between two messages."""
    assert read_slowly(Consumer(last=4)) == [0, 1, 2, 3, 4]
    with pytest.raises(KafkaUnreachable, match="up to offset 5"):
        read_slowly(Consumer(last=3))
