"""Spark's rows as a topic's records: what a task writes is one transaction, written once however often it is tried.

The transaction also moves an offset of a group that only this task's place in the query has: it says what is done.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from streamtrain import _native
from streamtrain.columns.record_encoding import Record, Records
from streamtrain.errors import UserMistake
from streamtrain.job import Job
from streamtrain.kafka.clients import KafkaConsumer
from streamtrain.kafka.once import Once
from streamtrain.kafka.settings import Purpose
from streamtrain.schemas import written_format
from streamtrain.topics.topic import MESSAGE_BYTES

QUERY, EPOCH = "sql.streaming.queryId", "streaming.sql.batchId"  # of a task of a stream; the first is its checkpoint's
MOST_BYTES = 128 << 20  # of one task's records: a transaction is over within transaction.timeout.ms
_TIMEOUT_MS = 30_000


@dataclass(frozen=True)
class Target:
    """The topic that rows go to."""

    job: Job
    key: str  # of the topic
    topic: str
    pack: int


class Place(NamedTuple):
    """The place of a task's rows, the same whenever they are written again."""

    query: str
    epoch: int
    partition: int


@dataclass
class Written(WriterCommitMessage):
    """The counts of what one task has written; 0 if it was written before."""

    rows: int
    records: int


class BatchWriter(DataSourceArrowWriter):
    """Tasks that have ended well stay written where others have not: a query that fails is no transaction."""

    def __init__(self, target: Target) -> None:
        self._target, self._query = target, uuid.uuid4().hex

    def write(self, iterator: Iterator[pyarrow.RecordBatch]) -> Written:
        return write_once(self._target, Place(self._query, 0, _task().partitionId()), iterator)


class EpochWriter(DataSourceStreamArrowWriter):
    """Each epoch's rows once, also where a query starts again from its checkpoint."""

    def __init__(self, target: Target) -> None:
        self._target = target

    def write(self, iterator: Iterator[pyarrow.RecordBatch]) -> Written:
        task = _task()
        query, epoch = task.getLocalProperty(QUERY), task.getLocalProperty(EPOCH)
        if query is None or epoch is None:
            raise UserMistake(f"expected a task of a stream in micro-batches, got one without {QUERY} and {EPOCH}")
        return write_once(self._target, Place(query, int(epoch), task.partitionId()), iterator)


def _task() -> TaskContext:
    found = TaskContext.get()
    assert found is not None
    return found


def write_once(target: Target, place: Place, batches: Iterator[pyarrow.RecordBatch]) -> Written:
    """The rows as one transaction, unless they were written before. Our errors where they are not written."""
    name = f"{target.job.name}.spark.{place.query}.{place.partition}"
    with (
        KafkaConsumer.open(Purpose.GROUP, target.job.kafka_consumer(), name) as group,
        Once(target.job.kafka_producer(), name, target.topic) as once,
    ):  # from here on no other attempt of this task writes
        if _done(group, target.topic) > place.epoch:
            return Written(0, 0)
        records = _gathered(target, batches)
        with once.transaction():
            for record in records:
                once.write(record.value, record.own.key, record.own.headers)
            once.move(target.topic, [(0, place.epoch + 1)], group.native.group_metadata())
    return Written(sum(record.rows for record in records), len(records))


def _done(group: KafkaConsumer, topic: str) -> int:
    """Epochs, from 0."""
    group.assign(topic, [])
    try:
        ((_, offset),) = group.native.committed([0], _TIMEOUT_MS)
    except _native.KafkaFailure as failure:
        raise group.explain(failure) from None
    return max(0, offset)


def _gathered(target: Target, batches: Iterator[pyarrow.RecordBatch]) -> list[Record]:
    """UserMistake naming the row and column that cannot be written, and for more than one transaction holds."""
    records = Records(
        target.job.schema, written_format(target.job, target.key), target.topic, target.pack, MESSAGE_BYTES
    )
    found: list[Record] = []
    size = 0
    for batch in batches:
        for block in records.blocks(pyarrow.Table.from_batches([batch]), None, records.key_column is not None):
            found += block
            size += sum(len(record.value) for record in block)
        if size > MOST_BYTES:
            raise UserMistake(
                f"{target.topic}: expected at most {MOST_BYTES >> 20} MiB of records in one partition of the frame, "
                "got more; repartition it into more"
            )
    return found
