"""Reads a stretch of a topic, committed messages only: for topics of ours that are read now and then, not followed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping

from streamtrain import _native
from streamtrain._native import KafkaCode
from streamtrain.errors import KafkaUnreachable
from streamtrain.kafka.clients import KafkaConsumer, Message
from streamtrain.kafka.error_codes import is_passing

TIMEOUT_S = 8.0  # without a message
_AT_ONCE = 1000


def read(
    consumer: KafkaConsumer, topic: str, partition: int, begin: int, end: int, at_once: int = _AT_ONCE
) -> Iterator[Message]:
    """The committed messages with begin <= offset < end, in order; KafkaUnreachable where it is cut short."""
    return read_all(consumer, topic, {partition: (begin, end)}, at_once=at_once)


def read_all(
    consumer: KafkaConsumer,
    topic: str,
    spans: Mapping[int, tuple[int, int | None]],
    stop: Callable[[], bool] = lambda: False,
    at_once: int = _AT_ONCE,
) -> Iterator[Message]:
    """The committed messages with begin <= offset < end by partition, in order within each; until `stop()`.

    A partition whose end is None is read on for ever, through a loss of the brokers. KafkaUnreachable where Kafka says
    nothing for 8 s while another has not reached its end; the time that the caller takes does not count. `at_once`:
    messages taken from librdkafka before the first of them is given.
    """
    still = {partition: end for partition, (begin, end) in spans.items() if end is None or begin < end}
    if not still:
        return
    consumer.assign(topic, [(partition, spans[partition][0]) for partition in sorted(still)])
    until = time.monotonic() + TIMEOUT_S
    while still and not stop():
        for message in consumer.consume(at_once, 0.1):
            if message.error and message.error != KafkaCode.PARTITION_EOF:
                if not is_passing(message.error):
                    raise consumer.explain(_native.KafkaFailure(message.error, f"{topic}: {message.error_text}"))
            elif message.partition in still:
                end = still[message.partition]
                if not message.error and (end is None or message.offset < end):
                    yield message
                # what a broker that has just come back takes for the end may lie before it
                if end is not None and message.offset + (not message.error) >= end:
                    del still[message.partition]
                until = time.monotonic() + TIMEOUT_S  # the time a caller takes is not Kafka's
        missing = {partition: end for partition, end in still.items() if end is not None}
        if missing and time.monotonic() > until:
            raise silence(topic, missing)
    consumer.assign(topic, [])  # one that is kept for later asks for no more until then


def silence(topic: str, missing: Mapping[int, int]) -> KafkaUnreachable:
    """Returns the error that no message came. `missing`: partitions, and the offset each was to be read up to."""
    ends = ", ".join(f"offset {end} of partition {partition}" for partition, end in missing.items())
    return KafkaUnreachable(
        f"{topic}: expected its messages up to {ends}, no answer from Kafka in {TIMEOUT_S:.0f} s"
    )
