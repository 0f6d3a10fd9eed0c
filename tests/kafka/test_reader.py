"""Reading to an end that never comes is an error, reading without one waits; a slow caller loses nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from itertools import islice
from types import SimpleNamespace
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
def consumer(kafka: Any) -> Iterator[KafkaConsumer]:
    with KafkaConsumer.open(Purpose.READ, {"bootstrap.servers": kafka.bootstrap}, "reading") as opened:
        yield opened


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


@pytest.mark.parametrize(
    ("spans", "looks", "expected"),
    [
        ({0: (1, 2), 1: (0, 1)}, None, [b"b", b"d"]),
        ({0: (3, 3), 1: (1, 1)}, None, []),
        ({0: (0, None), 1: (0, None)}, 20, [b"a", b"b", b"c", b"d"]),
        ({0: (1, 2), 1: (0, None)}, 30, [b"b", b"d"]),
    ],
    ids=["from starts to ends", "nothing", "without ends until it is stopped", "one to its end, one for ever"],
)
def test_what_is_read(
    consumer: KafkaConsumer, topic: str, spans: Any, looks: int | None, expected: list[bytes], monkeypatch: Any
) -> None:
    if looks is not None:
        monkeypatch.setattr(reading, "TIMEOUT_S", 0.1)
    stop = iter([False] * (looks or 600))
    read = reading.read_all(consumer, topic, spans, lambda: next(stop, True))
    assert sorted(message.value or b"" for message in read) == expected


def test_an_end_that_is_not_reached_is_said(consumer: KafkaConsumer, topic: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(reading, "TIMEOUT_S", 1.0)
    stop = iter([False] * 600)  # a minute
    with pytest.raises(KafkaUnreachable, match=r"up to offset 9 of partition 0, no"):
        list(reading.read_all(consumer, topic, {0: (0, 9), 1: (0, 1)}, lambda: next(stop, True)))


def test_a_slow_caller_gets_them_all_and_a_silent_broker_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replay trains between two messages, an hour here; a look that finds none takes its time-out."""
    now_s = [0.0]
    monkeypatch.setattr(reading, "time", SimpleNamespace(monotonic=lambda: now_s[0]))
    for last, end in ((4, nullcontext()), (3, pytest.raises(KafkaUnreachable, match="up to offset 5"))):
        messages = iter([Message(0, at, 0, None, b"", [], 0, "") for at in range(last + 1)])

        def consume(capacity: int, timeout_s: float, messages: Iterator[Message] = messages) -> list[Message]:
            now_s[0] += timeout_s
            return list(islice(messages, 1))

        consumer: Any = SimpleNamespace(assign=lambda *_: None, consume=consume)
        found = []
        with end:
            for message in reading.read(consumer, "topic", 0, 0, 5):
                found.append(message.offset)
                now_s[0] += 3600
        assert found == list(range(last + 1))
