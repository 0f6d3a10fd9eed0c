"""Reads a stretch of a topic, committed messages only: for topics of ours that are read now and then, not followed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

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


def read_all(
    consumer: KafkaConsumer,
    topic: str,
    starts: Sequence[int],
    ends: Sequence[int] | None,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[Message]:
    """The committed messages from `starts` on, by partition, in order within each: up to `ends`, else until `stop()`.

    Waits through a loss of the brokers where there are no `ends`; KafkaUnreachable where it is cut short.
    """
    still = {partition for partition, start in enumerate(starts) if ends is None or start < ends[partition]}
    if not still:
        return
    consumer.assign(topic, [(partition, starts[partition]) for partition in sorted(still)])
    until = time.monotonic() + _TIMEOUT_S
    while still and not stop():
        for message in consumer.consume(1000, 0.1):
            if message.error and message.error != PARTITION_EOF:
                if not is_passing(message.error):
                    raise consumer.explain(_native.KafkaFailure(message.error, f"{topic}: {message.error_text}"))
                continue
            end = None if ends is None else ends[message.partition]
            if not message.error and message.partition in still and (end is None or message.offset < end):
                yield message
            if end is not None and message.offset + (not message.error) >= end:
                still.discard(message.partition)
            until = time.monotonic() + _TIMEOUT_S
        if ends is not None and time.monotonic() > until:
            raise KafkaUnreachable(
                f"{topic}: expected its messages up to offsets {list(ends)}, no answer from Kafka in {_TIMEOUT_S:.0f} s"
            )
