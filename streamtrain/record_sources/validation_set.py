"""Rows that a stream's model is judged by and never trained on: of files, or of a topic up to where it ended at first.

Which they are stands in the manifests beside the scores, so that each is of the same rows, whoever goes on.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from streamtrain.columns.row_cache import RowCache
from streamtrain.columns.row_plan import Around
from streamtrain.compute.early_stopping import NAME
from streamtrain.compute.quality import HELD_OUT
from streamtrain.errors import UserMistake
from streamtrain.files.file_records import FileRecords
from streamtrain.files.found import FoundFile, found_files
from streamtrain.job import Job
from streamtrain.kafka.admin import Admin
from streamtrain.kafka.clients import KafkaConsumer
from streamtrain.kafka.reader import read
from streamtrain.kafka.settings import Purpose
from streamtrain.log import get_logger
from streamtrain.record_sources.source_changes import FileEntry, identity_of

log = get_logger(__name__)
WHAT = "train.early_stopping.held_out"


class ValidationSet(NamedTuple):
    """`description`: as in manifests: {"identity", "rows"}, of a topic with the offsets "from" and "to"."""

    rows: RowCache
    description: dict[str, Any]


def load_validation_set(
    job: Job,
    files: Sequence[FoundFile],
    kafka: Mapping[str, str],
    admin: Admin,
    metrics: Mapping[str, Any],
) -> ValidationSet | None:
    """Returns the validation set that a job names; None if it names none.

    Reads it from `files` if the job names files, else from its topic by of_topic(). `metrics` are those of the snapshot
    that training continues from.
    """
    early = job.train.early_stopping
    if early is None or early.held_out is None:
        return None
    if early.held_out.topic is None:
        return of_files(job, files)
    return of_topic(job, early.held_out.topic, kafka, admin, metrics.get(NAME, {}).get(HELD_OUT))


def named_files(job: Job) -> list[FoundFile]:
    """Returns the files of the validation set of a job's early stopping; [] if it names none.

    Raises UserMistake as found_files() does.
    """
    early = job.train.early_stopping
    if early is None or early.held_out is None or early.held_out.files is None:
        return []
    return found_files(early.held_out.files, f"{WHAT}.files")


def of_files(job: Job, files: Sequence[FoundFile]) -> ValidationSet:
    """UserMistake for a row that cannot be used, and a file that is another by now."""
    plan = job.plan()
    records = FileRecords(job, [file.path for file in files], format=plan.bare)
    rows = RowCache.of(plan, records, WHAT, records.where)
    for file in files:
        file.check_unchanged()
    identity = identity_of([FileEntry(file.name, file.digest, file.rows) for file in files])
    return ValidationSet(rows, {"identity": identity, "rows": rows.rows})


def of_topic(
    job: Job, topic: str, kafka: Mapping[str, str], admin: Admin, known: Mapping[str, Any] | None = None
) -> ValidationSet:
    """Up to where it ends now, or as `known`, where it still holds that. UserMistake where there is no such topic, and
    for a row that cannot be used."""
    state = admin.describe([topic])[topic]
    if state is None:
        raise UserMistake(f"{WHAT}.topic: expected a topic that Kafka has, got {topic}")
    begins = admin.earliest(topic, state.partitions)
    span = begins, admin.last_stable(topic, state.partitions)
    if known is not None:
        holds = all(now <= before for now, before in zip(begins, known.get("from", []), strict=False))
        if known.get("identity") == state.topic_id and holds:
            span = known["from"], known["to"]
        else:
            log.warning("the rows held out are others than before: what counts begins anew", topic=topic)
    consumer = KafkaConsumer.open(Purpose.FOLLOW, kafka)
    try:
        records = _TopicRecords(consumer, topic, *span)
        rows = RowCache.of(job.plan(), records, WHAT, records.where, bare=False)
    finally:
        consumer.close()
    return ValidationSet(rows, {"identity": state.topic_id, "from": span[0], "to": span[1], "rows": rows.rows})


class _TopicRecords:
    """One partition behind the other: sums of scores go by the order of rows."""

    def __init__(self, consumer: KafkaConsumer, topic: str, begins: Sequence[int], ends: Sequence[int]) -> None:
        self._consumer, self._topic, self._spans = consumer, topic, list(zip(begins, ends, strict=True))
        self._first = array("q")  # of each partition, the records before it
        self._offsets = array("q")

    def __iter__(self) -> Iterator[tuple[bytes, Around]]:
        for partition, (begin, end) in enumerate(self._spans):
            self._first.append(len(self._offsets))
            for message in read(self._consumer, self._topic, partition, begin, end):
                if message.value is not None:
                    self._offsets.append(message.offset)
                    yield message.value, message.around()

    def where(self, record: int, row: int) -> str:
        """A row of a record, both from 0, by the record's place in the topic."""
        partition = bisect_right(self._first, record) - 1
        return f"{self._topic} partition {partition} offset {self._offsets[record]} row {row}"
