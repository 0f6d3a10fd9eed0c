"""Reads a stretch of a topic, committed messages only: for topics of ours that are read now and then, not followed."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from streamtrain import _native
from streamtrain.errors import KafkaUnreachable
from streamtrain.kafka.consumer import PARTITION_EOF, KafkaConsumer, Message, ingest_config
from streamtrain.topics.rounds import RoundLog, decode, join

_TIMEOUT_S = 8.0  # without a message


def bounds(consumer: KafkaConsumer, topic: str, partition: int) -> tuple[int, int]:
    """(first offset, last stable offset); KafkaUnreachable when no broker answers."""
    try:
        low, high = consumer.native.watermarks(topic, partition, int(_TIMEOUT_S * 1000))
    except _native.KafkaFailure as failure:
        raise consumer.explain(failure) from None
    return low, high


def read(consumer: KafkaConsumer, topic: str, partition: int, begin: int, end: int) -> Iterator[Message]:
    """The committed messages with begin <= offset < end, in order."""
    if begin >= end:
        return
    consumer.assign(topic, [(partition, begin)])
    until = time.monotonic() + _TIMEOUT_S
    while time.monotonic() < until:
        for message in consumer.consume(1000, 0.2):
            if message.error == PARTITION_EOF or (not message.error and message.offset >= end):
                return
            if not message.error:
                until = time.monotonic() + _TIMEOUT_S
                yield message
                if message.offset == end - 1:
                    return
    raise KafkaUnreachable(
        f"{topic}: expected its messages up to offset {end}, no answer from Kafka in {_TIMEOUT_S:.0f} s"
    )


def read_round_logs(kafka: Mapping[str, str], topic: str) -> list[RoundLog]:
    """Every round log the topic still holds whole, in the order they were committed."""
    logs: list[RoundLog] = []
    parts: list[RoundLog] = []
    with KafkaConsumer(ingest_config(kafka)) as consumer:
        for message in read(consumer, topic, 0, *bounds(consumer, topic, 0)):
            assert message.value is not None
            part = decode(message.value)
            if part.part == 0:
                parts = []
            parts.append(part)
            if part.part == part.parts - 1 and len(parts) == part.parts:
                logs.append(join(parts))
                parts = []
    return logs
