"""Reads the records topic again where ranges leave holes or straddle a record (guarantees 1 and 2).

Holes may hide no committed record, and a record's rows are all accounted for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamtrain import _native
from streamtrain.errors import KafkaUnreachable
from streamtrain.job import Job
from streamtrain.kafka.consumer import KafkaConsumer, ingest_config
from streamtrain.kafka.reading import bounds, read
from streamtrain.topics.rounds import RoundLog
from streamtrain.vectorize.plan import native_plan
from streamtrain.verify.report import Check
from streamtrain.verify.rounds import lineages

_SCRATCH_ROWS = 4096


@dataclass
class _Stretch:
    """Consecutive ranges of one partition that must be read again; both ends at a record's boundary."""

    begin: int
    end: int
    records: int
    rows: int
    rows_known: bool  # a straddling record was cut off where the log's span begins or ends


def check_records(job: Job, logs: list[RoundLog]) -> Check:
    check = Check("records", "holes in the ranges hide no committed record; records over several batches are whole")
    topic = job.topic("records").name
    assert topic is not None
    stretches = rows = 0
    with KafkaConsumer(ingest_config(job.kafka_consumer())) as consumer:
        counter = _RowCounter(job)
        for _, group in lineages(logs):
            ranges = np.concatenate([log.ranges for log in group])
            for partition in np.unique(ranges["partition"]):
                for stretch in _stretches(ranges[ranges["partition"] == partition]):
                    stretches += 1
                    rows += _look(check, consumer, counter, topic, int(partition), stretch)
    check.span = f"{stretches} stretches, {rows} rows read again"
    return check


def _stretches(ranges: Any) -> Iterator[_Stretch]:
    holes = ranges["to_offset"] - ranges["from_offset"] != ranges["records"]
    straddles = (ranges["from_row"] > 0) | (ranges["to_row"] > 0)
    current: _Stretch | None = None
    for index in np.flatnonzero(holes | straddles):
        part = ranges[index]
        rows = int(part["trained"]) + int(part["dead"]) + int(part["filtered"])
        if current is None:
            known = not int(part["from_row"])
            current = _Stretch(int(part["from_offset"]) + (0 if known else 1), 0, 0, 0, known)
        current.records += int(part["records"])
        current.rows += rows
        current.end = int(part["to_offset"])
        if not int(part["to_row"]):
            yield current
            current = None
    if current is not None:  # the span ends inside a record
        current.rows_known = False
        yield current


def _look(
    check: Check, consumer: KafkaConsumer, counter: _RowCounter, topic: str, partition: int, stretch: _Stretch
) -> int:
    low, _ = bounds(consumer, topic, partition)
    if stretch.begin < low:
        check.not_checkable.append(
            f"partition {partition} offsets {stretch.begin} to {stretch.end}: removed by retention"
        )
        return 0
    records = rows = 0
    try:
        for message in read(consumer, topic, partition, stretch.begin, stretch.end):
            records += 1
            rows += counter.rows(message.value)
    except KafkaUnreachable as error:
        check.not_checkable.append(f"partition {partition}: {error}")
        return 0
    where = f"partition {partition} offsets {stretch.begin} to {stretch.end}"
    expected = stretch.records if stretch.rows_known else records
    check.expect(records == expected, f"{where}: {records} committed records, the round log accounts for {expected}")
    if stretch.rows_known:
        check.expect(
            rows == stretch.rows, f"{where}: the records hold {rows} rows, the round log accounts for {stretch.rows}"
        )
    return rows


class _RowCounter:
    """Counts a record's rows the way ingest does: trained, dead and filtered ones."""

    def __init__(self, job: Job) -> None:
        layout = _native.SlotLayout.make(_SCRATCH_ROWS, 1, job.schema.block_specs())
        self._slot = np.zeros(layout.slot_bytes, np.uint8)
        self._decoder = _native.Decoder(job.records.format, native_plan(job.schema, layout))

    def rows(self, value: bytes | None) -> int:
        if value is None:
            return 0
        self._decoder.begin(value)
        count = 0
        done = False
        while not done:
            done, _, trained, dead, filtered, *_ = self._decoder.next(self._slot, 0, _SCRATCH_ROWS)
            count += trained + dead + filtered
        return count
