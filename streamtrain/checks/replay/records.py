"""The records that ranges of a round log touch, read again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from streamtrain import _native
from streamtrain.checks.given_files import FilePartition, GivenFiles
from streamtrain.columns.schema import Schema
from streamtrain.errors import CheckFailed, StreamtrainError
from streamtrain.kafka.clients import KafkaConsumer
from streamtrain.kafka.errors import explain
from streamtrain.kafka.reader import read_all, silence
from streamtrain.kafka.settings import Purpose
from streamtrain.record_sources.source_changes import FileEntry, is_files
from streamtrain.topics.rounds import RoundLog
from streamtrain.topics.terms import Terms


class RecordsGone(Exception):
    """The topic no longer holds records of the round log, or files were not given; says which."""


class RecordsCompacted(RecordsGone):
    """The topic's cleanup.policy lets Kafka drop records of the round log, and it did; `count`: how many of a log's."""

    def __init__(self, text: str, count: Callable[[RoundLog], int]) -> None:
        super().__init__(text)
        self.count = count


class RecordReader(ABC):
    """The records of one source, a partition by a reader of its own."""

    def __init__(self, name: str) -> None:
        self._name = name

    @abstractmethod
    def open(self, partition: int, offset: int) -> _native.Source:
        """Returns a source that reads a partition from an offset on. It replaces the partition's earlier source.

        Raises RecordsGone if the partition begins after that offset.
        """

    @abstractmethod
    def close(self) -> None:
        """Closes what was opened."""

    def missing(self, part: Any, silent: bool) -> Exception:
        """Why a range was not read to its end."""
        partition, begin, end = int(part["partition"]), int(part["from_offset"]), int(part["to_offset"])
        if silent:
            return silence(self._name, {partition: end})
        return CheckFailed(
            f"{self._name} partition {partition} offsets {begin} to {end}: expected "
            f"{int(part['records']) + (int(part['to_row']) > 0)} records, found fewer"
        )

    @abstractmethod
    def explained(self, failure: _native.KafkaFailure) -> StreamtrainError:
        """Our error for what ended the reading."""


class _TopicReader(RecordReader):
    """A reader of a topic, with one consumer per partition."""

    def __init__(self, name: str, kafka: Mapping[str, str], compacted: bool) -> None:
        super().__init__(name)
        self._kafka, self._compacted = kafka, compacted
        self._consumers: dict[int, KafkaConsumer] = {}

    def open(self, partition: int, offset: int) -> _native.Source:
        if before := self._consumers.pop(partition, None):
            before.close()
        consumer = self._consumers[partition] = KafkaConsumer.open(Purpose.REPLAY, self._kafka)
        low, end = consumer.bounds(self._name, partition)
        if offset < low:
            raise RecordsGone(
                f"{self._name} partition {partition} begins at offset {low}, its round log at {offset}: "
                "the records between were removed (retention)"
            )
        return _native.KafkaSource(consumer.native, self._name, end_offsets=[(partition, end)], bounded=True)

    def missing(self, part: Any, silent: bool) -> Exception:
        if silent or not self._compacted:
            return super().missing(part, silent)
        partition, begin, end = int(part["partition"]), int(part["from_offset"]), int(part["to_offset"])
        where = f"{self._name} partition {partition} offsets {begin} to {end}, whose cleanup.policy is compact"
        return RecordsCompacted(where, self._gone)

    def _gone(self, log: RoundLog) -> int:
        """Returns how many records of the log's ranges no longer exist."""
        spans: dict[int, tuple[int, int | None]] = {}
        for part in log.ranges:
            begin, _ = spans.get(partition := int(part["partition"]), (int(part["from_offset"]), None))
            spans[partition] = begin, int(part["to_offset"])
        with KafkaConsumer.open(Purpose.READ, self._kafka) as consumer:
            found = sum(1 for _ in read_all(consumer, self._name, spans))
        return max(1, int(log.ranges["records"].sum(dtype="i8")) - found)

    def close(self) -> None:
        for consumer in self._consumers.values():
            consumer.close()
        self._consumers.clear()

    def explained(self, failure: _native.KafkaFailure) -> StreamtrainError:
        code, text = failure.args
        return explain(code, text, self._name, self._kafka["bootstrap.servers"])


class _FilesReader(RecordReader):
    """A reader of files."""

    def __init__(self, identity: str, partitions: Sequence[FilePartition]) -> None:
        super().__init__("files")
        self._identity, self._partitions = identity, partitions

    def open(self, partition: int, offset: int) -> _native.Source:
        if partition >= len(self._partitions):
            raise CheckFailed(f"{self._identity} partition {partition}: no manifest tells of so many files")
        file = self._partitions[partition]
        return _native.IteratorSource((row.offset, row.value or b"") for row in file.read(offset, file.end))

    def close(self) -> None: ...

    def explained(self, failure: _native.KafkaFailure) -> StreamtrainError:
        raise AssertionError(failure)  # files are not Kafka's


class Readers:
    """A reader for each record source that a lineage's rounds have read. `files_of` gives the files of an identity."""

    def __init__(
        self,
        topic: str,
        topic_id: str,
        kafka: Mapping[str, str],
        files: GivenFiles | None = None,
        files_of: Callable[[str], Sequence[FileEntry]] = lambda identity: (),
        compacted: bool = False,
    ) -> None:
        self._topic, self._topic_id, self._compacted, self._kafka = topic, topic_id, compacted, kafka
        self._files, self._files_of = files, files_of
        self._readers: dict[tuple[str, str], RecordReader] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for reader in self._readers.values():
            reader.close()
        self._readers.clear()

    def of(self, terms: Terms, schema: Schema) -> RecordReader:
        """Returns the reader of the record source in these round settings.

        Raises RecordsGone if that source no longer exists.
        """
        key = terms.topic_id, repr(sorted(terms.format.items())) if is_files(terms.topic_id) else ""
        if key not in self._readers:
            make = self._of_files if is_files(terms.topic_id) else self._of_topic
            self._readers[key] = make(terms, schema)
        return self._readers[key]

    def _of_topic(self, terms: Terms, schema: Schema) -> RecordReader:
        if terms.topic_id != self._topic_id:
            raise RecordsGone(
                f"its records were those of {self._topic} with the topic id {terms.topic_id}; "
                f"that topic was deleted and made again as {self._topic_id}"
            )
        return _TopicReader(self._topic, self._kafka, self._compacted)

    def _of_files(self, terms: Terms, schema: Schema) -> RecordReader:
        if self._files is None:
            raise RecordsGone("its rows were those of files; give them with --files")
        return _FilesReader(
            terms.topic_id, self._files.partitions(self._files_of(terms.topic_id), schema, terms.format)
        )
