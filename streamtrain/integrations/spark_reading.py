"""Ranges of a topic's offsets as Spark's partitions: a task reads its own and decodes it as a trainer would."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    FloatType,
    IntegerType,
    LongType,
    StructField,
    StructType,
)

from streamtrain._native import RecordAround
from streamtrain.columns.row_plan import Cells, LeftOut, Lists, Part, RowPlan, cell_path
from streamtrain.errors import RecordError, UserMistake
from streamtrain.job import Job
from streamtrain.kafka.admin import Admin
from streamtrain.kafka.clients import KafkaConsumer
from streamtrain.kafka.error_codes import no_such_topic
from streamtrain.kafka.reader import read
from streamtrain.kafka.settings import Purpose

_TYPES = {"f4": FloatType(), "i4": IntegerType(), "i8": LongType()}
_BYTES = "u1"  # of pictures
_TOPIC_ID = "topic_id"
_Spans = list[tuple[int, int]]


@dataclass(frozen=True)
class ReadSettings:
    """The settings of a read: what is read, and how much at a time."""

    job: Job
    topic: str
    requests: bool
    errors: str
    offsets_per_task: int
    offsets_per_trigger: int
    start: str

    def plan(self) -> RowPlan:
        return self.job.plan(requests=self.requests)

    def admin(self) -> Admin:
        return Admin(self.job.kafka.bootstrap, self.job.kafka_admin())

    def spans(self) -> _Spans:
        """First offset and last stable one of each partition."""
        if (found := self.admin().spans(self.topic)) is None:
            raise no_such_topic(self.topic, self.job.kafka.bootstrap)
        return found


@dataclass
class OffsetRange(InputPartition):
    """Offsets begin <= offset < end of a partition of the topic."""

    partition: int
    begin: int
    end: int


def spark_schema(parts: Sequence[Part]) -> StructType:
    """Returns the schema of what the model would get, without missing values. A picture's bytes are bytes."""
    return StructType([StructField(part.name, _type(part), nullable=False) for part in parts])


def _type(part: Part) -> DataType:
    code = part.dtype.str[1:]
    if code == _BYTES:
        return BinaryType()
    several = part.block.ragged or part.width > 1
    return ArrayType(_TYPES[code], containsNull=False) if several else _TYPES[code]


def _cut(partition: int, begin: int, end: int, most: int) -> Iterator[OffsetRange]:
    for first in range(begin, end, most):
        yield OffsetRange(partition, first, min(first + most, end))


class RangeReader(DataSourceReader):
    """The topic as it is when the query is planned."""

    def __init__(self, settings: ReadSettings) -> None:
        self._settings = settings

    def partitions(self) -> Sequence[OffsetRange]:
        most = self._settings.offsets_per_task
        return [
            each for number, (low, end) in enumerate(self._settings.spans()) for each in _cut(number, low, end, most)
        ]

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        assert isinstance(partition, OffsetRange)
        return batches_of(self._settings, partition)


class StreamReader(DataSourceStreamReader):
    """An offset of the stream is the topic's id and, by partition, the next offset."""

    def __init__(self, settings: ReadSettings) -> None:
        self._settings = settings

    def initialOffset(self) -> dict[str, Any]:
        at = 0 if self._settings.start == "earliest" else 1
        return self._offset([span[at] for span in self._settings.spans()])

    def getDefaultReadLimit(self) -> ReadLimit:
        most = self._settings.offsets_per_trigger
        return ReadMaxRows(most) if most else ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        spans = self._settings.spans()
        most = -(-limit.max_rows // len(spans)) if isinstance(limit, ReadMaxRows) else None
        ends = []
        for number, (_, end) in enumerate(spans):
            begin = int(start.get(str(number), 0))
            ends.append(max(begin, end if most is None else min(end, begin + most)))
        return self._offset(ends, str(start[_TOPIC_ID]))

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[OffsetRange]:
        """UserMistake where what was not read yet is no longer there, or the topic is another."""
        settings = self._settings
        found: list[OffsetRange] = []
        self._check_id(str(end[_TOPIC_ID]))
        for number, (low, _) in enumerate(settings.spans()):
            begin, until = int(start.get(str(number), 0)), int(end.get(str(number), 0))
            if begin < low and begin < until:
                raise UserMistake(
                    f"{settings.topic} partition {number}: expected to read on at offset {begin}, it begins at {low}: "
                    "what was between was removed; start again with another checkpoint"
                )
            found += _cut(number, begin, until, settings.offsets_per_task)
        return found

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        assert isinstance(partition, OffsetRange)
        return batches_of(self._settings, partition)

    def _offset(self, offsets: Sequence[int], topic_id: str | None = None) -> dict[str, Any]:
        numbered: Mapping[str, Any] = {str(number): offset for number, offset in enumerate(offsets)}
        return {_TOPIC_ID: topic_id or self._topic_id(), **numbered}

    def _topic_id(self) -> str:
        return str(self._settings.admin().topic_ids([self._settings.topic])[self._settings.topic])

    def _check_id(self, expected: str) -> None:
        if (now := self._topic_id()) != expected:
            raise UserMistake(
                f"{self._settings.topic}: expected topic id {expected}, found {now}: it was deleted and made again; "
                "start again with another checkpoint"
            )


def batches_of(settings: ReadSettings, part: OffsetRange) -> Iterator[pyarrow.RecordBatch]:
    """The rows of a range, in order. RecordError for one that cannot be used, unless it is left out."""
    plan, topic, offsets = settings.plan(), settings.topic, array("q")
    schema = arrow_schema(plan.parts)
    with KafkaConsumer.open(Purpose.READ, settings.job.kafka_consumer()) as consumer:
        low, _ = consumer.bounds(topic, part.partition)
        if part.begin < low:
            raise RecordError(
                f"{topic}[{part.partition}]@{part.begin}: expected this record, the first is {low}: removed"
            )

        def records() -> Iterator[tuple[bytes, RecordAround]]:
            for message in read(consumer, topic, part.partition, part.begin, part.end):
                if message.value is not None:  # else a tombstone
                    offsets.append(message.offset)
                    yield message.value, message.around()

        for rows in plan.batches(records()):
            if rows.left_out and settings.errors == "raise":
                raise RecordError(_where(topic, part.partition, offsets, rows.left_out[0]))
            if rows.count:
                cells = [_arrow(rows[each.name], kind.type) for each, kind in zip(plan.parts, schema, strict=True)]
                yield pyarrow.RecordBatch.from_arrays(cells, schema=schema)


def _where(topic: str, partition: int, offsets: array[int], each: LeftOut) -> str:
    where = f"{topic}[{partition}]@{offsets[each.record]} row {each.row_from} at {cell_path(each.path)}"
    return f'{where}: {each.reason}; option("errors", "leave_out") leaves such rows out'


def arrow_schema(parts: Sequence[Part]) -> Any:
    """Returns spark_schema() as an Arrow schema, as Spark requests it."""

    def kind(part: Part) -> Any:
        if part.dtype.str[1:] == _BYTES:
            return pyarrow.binary()
        plain = pyarrow.from_numpy_dtype(part.dtype)
        several = part.block.ragged or part.width > 1
        return pyarrow.list_(pyarrow.field("element", plain, nullable=False)) if several else plain

    return pyarrow.schema([pyarrow.field(part.name, kind(part), nullable=False) for part in parts])


def _arrow(cells: Cells, kind: Any) -> Any:
    if isinstance(cells, Lists):
        offsets = pyarrow.array(cells.offsets, pyarrow.int32())
        return pyarrow.ListArray.from_arrays(offsets, pyarrow.array(cells.values), type=kind)
    if kind == pyarrow.binary():
        table = np.ascontiguousarray(cells).reshape(len(cells), -1)
        of_size = pyarrow.binary(table.shape[1])
        fixed = pyarrow.FixedSizeBinaryArray.from_buffers(of_size, len(table), [None, pyarrow.py_buffer(table)])
        return fixed.cast(kind)
    if cells.ndim == 1:
        return pyarrow.array(cells, kind)
    ends = np.arange(len(cells) + 1, dtype=np.int32) * cells.shape[1]
    return pyarrow.ListArray.from_arrays(pyarrow.array(ends), pyarrow.array(cells.reshape(-1)), type=kind)
