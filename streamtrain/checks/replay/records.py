"""The records that ranges of a round log touch, read again."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from streamtrain.checks.given_files import GivenFiles
from streamtrain.columns.schema import Schema
from streamtrain.errors import CheckFailed
from streamtrain.kafka.clients import KafkaConsumer, Message
from streamtrain.kafka.reader import read
from streamtrain.kafka.settings import Purpose
from streamtrain.origins.moves import ToldFile, is_files
from streamtrain.topics.terms import Terms

_NO_MORE = Message(0, sys.maxsize, -1, None, None, [], 0, "")


class RecordsGone(Exception):
    """The topic no longer holds records of the round log, or files were not given; says which."""


@dataclass
class _Stream:
    """One partition, read on in offset order; `held` is the newest record read: ranges may share one."""

    messages: Iterator[Message]
    close: Callable[[], None]
    held: Message


Open = Callable[[int, int], tuple[Iterator[Message], Callable[[], None]]]  # partition, offset: its records, and an end


class RecordReader:
    """Records of each partition in offset order, opened when first needed."""

    def __init__(self, name: str, open_at: Open) -> None:
        self._name, self._open_at = name, open_at
        self._open: dict[int, _Stream] = {}

    def close(self) -> None:
        for stream in self._open.values():
            stream.close()
        self._open.clear()

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
                    f"{self._name} partition {partition} offsets {int(part['from_offset'])} to {end}: expected "
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
            stream.close()
        messages, close = self._open_at(partition, offset)
        stream = self._open[partition] = _Stream(messages, close, _NO_MORE._replace(offset=offset - 1))
        return stream


class Readers:
    """A reader for each origin that a lineage's rounds have read. `told`: the files of an identity."""

    def __init__(
        self,
        topic: str,
        topic_id: str,
        kafka: Mapping[str, str],
        files: GivenFiles | None = None,
        told: Callable[[str], Sequence[ToldFile]] = lambda identity: (),
    ) -> None:
        self._topic, self._topic_id, self._kafka = topic, topic_id, kafka
        self._files, self._told = files, told
        self._made: dict[tuple[str, str], RecordReader] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for reader in self._made.values():
            reader.close()
        self._made.clear()

    def of(self, terms: Terms, schema: Schema) -> RecordReader:
        """Of the origin that these terms name. RecordsGone where it is not there any more."""
        key = terms.topic_id, repr(sorted(terms.format.items())) if is_files(terms.topic_id) else ""
        if key not in self._made:
            make = self._of_files if is_files(terms.topic_id) else self._of_topic
            self._made[key] = make(terms, schema)
        return self._made[key]

    def _of_topic(self, terms: Terms, schema: Schema) -> RecordReader:
        if terms.topic_id != self._topic_id:
            raise RecordsGone(
                f"its records were those of {self._topic} with the topic id {terms.topic_id}; "
                f"that topic was deleted and made again as {self._topic_id}"
            )
        return RecordReader(self._topic, self._open_topic)

    def _open_topic(self, partition: int, offset: int) -> tuple[Iterator[Message], Callable[[], None]]:
        consumer = KafkaConsumer.open(Purpose.REPLAY, self._kafka)
        low, end = consumer.bounds(self._topic, partition)
        if offset < low:
            consumer.close()
            raise RecordsGone(
                f"{self._topic} partition {partition} begins at offset {low}, its round log at {offset}: "
                "the records between were removed (retention)"
            )
        return read(consumer, self._topic, partition, offset, end), consumer.close

    def _of_files(self, terms: Terms, schema: Schema) -> RecordReader:
        if self._files is None:
            raise RecordsGone("its rows were those of files; give them with --files")
        partitions = self._files.partitions(self._told(terms.topic_id), schema, terms.format)

        def open_at(partition: int, offset: int) -> tuple[Iterator[Message], Callable[[], None]]:
            if partition >= len(partitions):
                raise CheckFailed(f"{terms.topic_id} partition {partition}: no manifest tells of so many files")
            return partitions[partition].read(offset, partitions[partition].end), lambda: None

        return RecordReader("files", open_at)
