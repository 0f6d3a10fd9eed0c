"""Messages of a test to a topic, one producer a call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import Producer


def send(bootstrap: str, topic: str, messages: Iterable[Mapping[str, Any] | bytes | None]) -> None:
    """Produces messages, keywords of Producer.produce or values alone, and waits until the broker has all."""
    # a batch sent again after a busy broker's error stays before those behind it. An idempotent producer, which
    # would do that too, is half a second in getting its number, and tests make hundreds
    own = {"linger.ms": 5, "max.in.flight.requests.per.connection": 1}
    producer = Producer({"bootstrap.servers": bootstrap, **own})
    for message in messages:
        keywords = message if isinstance(message, Mapping) else {"value": message}
        while True:
            try:
                producer.produce(topic, **keywords)
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(60) == 0
