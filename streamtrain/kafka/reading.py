"""Reads a stretch of a topic, committed messages only: for topics of ours that are read now and then, not followed."""

from __future__ import annotations

import time
from collections.abc import Iterator

from streamtrain import _native
from streamtrain.errors import KafkaUnreachable
from streamtrain.kafka.consumer import PARTITION_EOF, KafkaConsumer, Message
from streamtrain.kafka.errors import is_passing

_TIMEOUT_S = 8.0  # without a message


def bounds(consumer: KafkaConsumer, topic: str, partition: int) -> tuple[int, int]:
    """(first offset, last stable offset); KafkaUnreachable when no broker answers."""
    try:
        low, high = consumer.native.watermarks(topic, partition, int(_TIMEOUT_S * 1000))
    except _native.KafkaFailure as failure:
        raise consumer.explain(failure) from None
    return low, high


def read(consumer: KafkaConsumer, topic: str, partition: int, begin: int, end: int) -> Iterator[Message]:
    """The committed messages with begin <= offset < end, in order; KafkaUnreachable where it is cut short."""
    if begin >= end:
        return
    consumer.assign(topic, [(partition, begin)])
    until = time.monotonic() + _TIMEOUT_S
    while time.monotonic() < until:
        for message in consumer.consume(1000, 0.2):
            if not message.error:
                if message.offset >= end:
                    return
                yield message
                until = time.monotonic() + _TIMEOUT_S  # the time a caller takes is not Kafka's
                if message.offset == end - 1:
                    return
            elif message.error == PARTITION_EOF:
                if message.offset >= end:  # a broker that has just come back may know less than it did
                    return
            elif not is_passing(message.error):
                raise consumer.explain(_native.KafkaFailure(message.error, f"{topic}: {message.error_text}"))
    raise KafkaUnreachable(
        f"{topic}: expected its messages up to offset {end}, no answer from Kafka in {_TIMEOUT_S:.0f} s"
    )
