"""Rows that a stream's model is judged by and never trained on: of files, or of a topic up to where it ended at first.

Which they are stands in the manifests beside the scores, so that each is of the same rows, whoever goes on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from streamtrain.columns.held_rows import HeldRows
from streamtrain.columns.row_plan import Around
from streamtrain.errors import UserMistake
from streamtrain.files.found import FoundFile
from streamtrain.files.records import FileRecords
from streamtrain.job import Job
from streamtrain.kafka.admin import Admin
from streamtrain.kafka.clients import KafkaConsumer
from streamtrain.kafka.reader import read
from streamtrain.kafka.settings import Purpose
from streamtrain.log import get_logger
from streamtrain.origins.moves import ToldFile, identity_of

log = get_logger(__name__)
_WHAT = "train.early_stopping.held_out"


class HeldOut(NamedTuple):
    """`told`: what they are, as manifests say it: {"identity", "rows"}, of a topic with the offsets "from" and "to"."""

    rows: HeldRows
    told: dict[str, Any]


def of_files(job: Job, files: Sequence[FoundFile]) -> HeldOut:
    """UserMistake for a row that cannot be used, and a file that is another by now."""
    plan = job.plan()
    rows = HeldRows.of(plan, iter(FileRecords(job, [file.path for file in files], format=plan.bare)), _WHAT)
    for file in files:
        file.check_unchanged()
    identity = identity_of([ToldFile(file.name, file.digest, file.rows) for file in files])
    return HeldOut(rows, {"identity": identity, "rows": rows.rows})


def of_topic(
    job: Job, topic: str, kafka: Mapping[str, str], admin: Admin, known: Mapping[str, Any] | None = None
) -> HeldOut:
    """Up to where it ends now, or as `known`, where it still holds that. UserMistake where there is no such topic, and
    for a row that cannot be used."""
    state = admin.describe([topic])[topic]
    if state is None:
        raise UserMistake(f"{_WHAT}.topic: expected a topic that Kafka has, got {topic}")
    begins = admin.earliest(topic, state.partitions)
    span = begins, admin.last_stable(topic, state.partitions)
    if known is not None:
        holds = all(now <= before for now, before in zip(begins, known.get("from", []), strict=False))
        if known.get("identity") == state.topic_id and holds:
            span = known["from"], known["to"]
        else:
            log.warning("the held-out topic holds other records than before: what counts begins anew", topic=topic)
    consumer = KafkaConsumer.open(Purpose.FOLLOW, kafka)
    try:
        rows = HeldRows.of(job.plan(), _records(consumer, topic, *span), _WHAT, bare=False)
    finally:
        consumer.close()
    return HeldOut(rows, {"identity": state.topic_id, "from": span[0], "to": span[1], "rows": rows.rows})


def _records(
    consumer: KafkaConsumer, topic: str, begins: Sequence[int], ends: Sequence[int]
) -> Iterator[tuple[bytes, Around]]:
    """One partition behind the other: sums of scores go by the order of rows."""
    for partition, (begin, end) in enumerate(zip(begins, ends, strict=True)):
        for message in read(consumer, topic, partition, begin, end):
            if message.value is not None:
                yield message.value, message.around()
