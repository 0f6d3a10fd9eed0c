"""The input of a verification: the messages in a job's topics, and how far each partition goes back.

Nothing here knows where they come from: lists of messages in a test, Kafka by `streamtrain.checks.verify.reader`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Protocol

from streamtrain.checks.given_files import GivenFiles
from streamtrain.kafka.clients import Message


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
class ReadTopics:
    """The topics of a job; None where there is none of that name.

    As they were at one moment after another, in the order they stand here, so that a prediction has its snapshot, a
    snapshot its dead letters and a dead letter its round log, also while the job runs.
    """

    job: str
    predictions: Topic | None
    snapshots: Topic | None
    dead_letters: Topic | None
    rounds: Topic | None
    control: Topic | None
    requests: Topic | None
    records: Topic | None
    control_end: int  # of control before the snapshots were looked at
    looked_ms: int  # when that was, since 1970
    exactly_once: bool = True  # the predictors' delivery
    files: GivenFiles | None = None  # that were read in the place of `records`


# keys of topics, in the order in which their ends are taken
KEYS = tuple(field.name for field in fields(ReadTopics) if field.type == "Topic | None")
