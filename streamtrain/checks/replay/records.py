"""The records that ranges of a round log touch, read again."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from streamtrain.errors import CheckFailed
from streamtrain.kafka.clients import KafkaConsumer, Message
from streamtrain.kafka.reader import read
from streamtrain.kafka.settings import Purpose

_NO_MORE = Message(0, sys.maxsize, -1, None, None, [], 0, "")


class RecordsGone(Exception):
    """The topic no longer holds records of the round log; says which."""


@dataclass
class _Stream:
    """One partition, read on in offset order; `held` is the newest record read: ranges may share one."""

    consumer: KafkaConsumer
    messages: Iterator[Message]
    held: Message


class RecordReader:
    """Records of each partition in offset order; one consumer a partition, opened when first needed."""

    def __init__(self, topic: str, topic_id: str, kafka: Mapping[str, str]) -> None:
        self._topic = topic
        self._topic_id = topic_id
        self._kafka = kafka
        self._open: dict[int, _Stream] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for stream in self._open.values():
            stream.consumer.close()
        self._open.clear()

    def check_topic_id(self, topic_id: str) -> None:
        """RecordsGone where ranges of this topic id speak of a topic that was made again since."""
        if topic_id != self._topic_id:
            raise RecordsGone(
                f"its records were those of {self._topic} with the topic id {topic_id}; "
                f"that topic was deleted and made again as {self._topic_id}"
            )

    def records(self, part: Any) -> Iterator[Message]:
        """The records that range `part` touches; the one at its end only if some of its rows are in the range."""
        partition, at, end = int(part["partition"]), int(part["from_offset"]), int(part["to_offset"])
        ends_inside = int(part["to_row"]) > 0
        wanted = int(part["records"]) + ends_inside
        if not wanted:
            return  # only control records, aborted or compacted ones
        stream = self._stream(partition, at)
        for _ in range(wanted):
            while stream.held.offset < at:
                stream.held = next(stream.messages, _NO_MORE)
            if stream.held.offset >= end + ends_inside:
                raise CheckFailed(
                    f"{self._topic} partition {partition} offsets {int(part['from_offset'])} to {end}: expected "
                    f"{wanted} records, found fewer"
                )
            yield stream.held
            at = stream.held.offset + 1

    def _stream(self, partition: int, offset: int) -> _Stream:
        """The partition's stream, not beyond `offset`: anew where a gap led back in a partition that was cut short."""
        stream = self._open.get(partition)
        if stream is not None:
            if stream.held.offset <= offset:
                return stream
            stream.consumer.close()
        consumer = KafkaConsumer.open(Purpose.REPLAY, self._kafka)
        low, end = consumer.bounds(self._topic, partition)
        if offset < low:
            consumer.close()
            raise RecordsGone(
                f"{self._topic} partition {partition} begins at offset {low}, its round log at {offset}: "
                "the records between were removed (retention)"
            )
        messages = read(consumer, self._topic, partition, offset, end)
        stream = self._open[partition] = _Stream(consumer, messages, _NO_MORE._replace(offset=offset - 1))
        return stream
