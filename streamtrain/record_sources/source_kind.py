"""A kind of record source, and how its records are read again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Protocol

from streamtrain import _native
from streamtrain.columns.schema import Schema
from streamtrain.errors import CheckFailed, StreamtrainError
from streamtrain.kafka.admin import Admin
from streamtrain.kafka.clients import Message
from streamtrain.kafka.reader import silence
from streamtrain.record_sources import REGISTRY
from streamtrain.record_sources.given_files import GivenFiles
from streamtrain.record_sources.record_source import Gaps
from streamtrain.record_sources.source_changes import FileEntry
from streamtrain.topics.manifest import Manifest, Positions
from streamtrain.topics.publication_logs import RoundLogs
from streamtrain.topics.terms import Terms

SAY_POSITIONS = "nothing was imported; say where training goes on: --positions beginning, or --positions end"

Progress = tuple[list[int], list[int] | None]  # for each partition the offset read up to, and what is left if known


class Partition(Protocol):
    """Committed messages of offsets `low` to `end` (the last stable offset), less what was compacted or aborted."""

    @property
    def low(self) -> int: ...
    @property
    def end(self) -> int: ...

    def read(self, begin: int, end: int) -> Iterator[Message]:
        """Yields the messages with begin <= offset < end, in order. Use one iterator of a topic at a time."""


@dataclass(frozen=True)
class Topic:
    """`topic_id` is Kafka's: a topic deleted and made again has another."""

    name: str
    topic_id: str
    partitions: Sequence[Partition]
    compacted: bool = False  # by its cleanup.policy: offsets without a record are no loss

    def messages(self) -> Iterator[Message]:
        """Every message it holds, a partition after the other."""
        for partition in self.partitions:
            yield from partition.read(partition.low, partition.end)

    @property
    def cut(self) -> bool:
        """Retention or compaction has removed messages from its beginning."""
        return any(partition.low > 0 for partition in self.partitions)


@dataclass(frozen=True)
class Given:
    """The places that records can be read from again: the records topic as it is now, and files that were given."""

    topic: Topic
    files: GivenFiles | None = None
    files_of: Callable[[str], Sequence[FileEntry]] = lambda identity: ()  # that it is made of, as manifests tell
    kafka: Mapping[str, str] = field(default_factory=dict)  # a consumer's settings


class RecordsGone(Exception):
    """The topic no longer holds records of the round log, or files were not given; says which."""


class RecordsCompacted(RecordsGone):
    """The topic's cleanup.policy lets Kafka drop records of the round log, and it did.

    `count` gives how many of a publication's.
    """

    def __init__(self, text: str, count: Callable[[RoundLogs], int]) -> None:
        super().__init__(text)
        self.count = count


class RecordReader(ABC):
    """The records of one source, a partition by a reader of its own."""

    def __init__(self, topic: Topic) -> None:
        self._topic, self._name = topic, topic.name

    @abstractmethod
    def open(self, partition: int, offset: int) -> _native.Source:
        """Returns a source that reads a partition from an offset on. It replaces the partition's earlier source.

        Raises RecordsGone if the partition begins after that offset.
        """

    @abstractmethod
    def close(self) -> None:
        """Closes what was opened."""

    def missing(self, part: Any, silent: bool) -> Exception:
        """Returns the error for a range that was not read to its end."""
        partition, begin, end = int(part["partition"]), int(part["from_offset"]), int(part["to_offset"])
        if silent:
            return silence(self._name, {partition: end})
        return CheckFailed(
            f"{self._name} partition {partition} offsets {begin} to {end}: expected "
            f"{int(part['records']) + (int(part['to_row']) > 0)} records, found fewer"
        )

    @abstractmethod
    def explained(self, failure: _native.KafkaFailure) -> StreamtrainError:
        """Returns our error for what ended the reading."""


class SourceKind(ABC):
    """A kind of record source: what is asked of one that a lineage has read, by the identity that stands in positions
    and round settings.

    `off_topic` says what holds its records, if no topic does; `is_dense`, that no offset is without a record; `gone`,
    why its records cannot be read again; `promise`, what `findings` check, if a kind has some.
    """

    off_topic = ""
    is_dense = False
    promise = ""

    @property
    @abstractmethod
    def gone(self) -> str: ...

    @abstractmethod
    def topic(self, terms: Terms, schema: Mapping[str, Any] | None, given: Given) -> Topic | None:
        """Returns the records as a topic, whose partitions are the source's; None if they cannot be read again.

        `schema`: of the manifests whose columns the round settings name.
        """

    @abstractmethod
    def reader(self, terms: Terms, schema: Schema, given: Given) -> RecordReader:
        """Returns what replay reads them by. Raises RecordsGone if they cannot be read again."""

    @abstractmethod
    def name_of(self, identity: str, partition: int, given: Given) -> str | None:
        """Returns the name that dead letters give to the source of a partition's records; None if it is unknown."""

    @abstractmethod
    def progress(self, manifest: Manifest, topic_id: str | None, ends: Sequence[int]) -> Progress:
        """Returns how far a manifest at this source has read it. `topic_id` and `ends`: of the records topic now."""

    def decoded_as(self, schema: Schema, format: Mapping[str, Any]) -> tuple[Schema, dict[str, Any]]:
        """Returns the columns and the format that its records are decoded by, of those that the round settings name."""
        return schema, dict(format)

    def begins(self, identity: str, gaps: Gaps) -> bool:
        """Returns True if these are the gaps of a lineage that begins at this identity."""
        return not gaps

    def findings(self, manifest: Manifest, files: GivenFiles | None) -> Iterator[str]:
        """Yields what a manifest at this source says wrongly of it."""
        yield from ()

    def imported_at(self, where: str, start: str) -> str:
        """Returns the positions of an import that asks to keep those of `where`. `start` is records.start."""
        return "keep"

    @abstractmethod
    def check_kept(self, where: str, seen: Positions, topic: str, admin: Admin) -> None:
        """UserMistake if positions of another job or cluster say nothing of these records. `where` they were seen."""


@cache
def source_of(identity: str) -> SourceKind:
    """Returns the kind of an identity, which begins with the kind's name. A topic's is the id that Kafka gave it."""
    name = identity.partition(":")[0]
    found: SourceKind = REGISTRY.get(name if name in REGISTRY.names() else "topic").SOURCE
    return found
