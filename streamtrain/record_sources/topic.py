"""The records topic, known by the id that Kafka gave it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from streamtrain import _native
from streamtrain.columns.schema import Schema
from streamtrain.errors import StreamtrainError, UserMistake
from streamtrain.kafka.admin import Admin
from streamtrain.kafka.clients import KafkaConsumer
from streamtrain.kafka.error_codes import explain
from streamtrain.kafka.reader import read_all
from streamtrain.kafka.settings import Purpose
from streamtrain.record_sources.source_kind import (
    SAY_POSITIONS,
    Given,
    Progress,
    RecordReader,
    RecordsCompacted,
    RecordsGone,
    SourceKind,
    Topic,
)
from streamtrain.topics.manifest import Manifest, Positions
from streamtrain.topics.publication_logs import RoundLogs
from streamtrain.topics.terms import Terms


class _TopicReader(RecordReader):
    """A reader of a topic, with one consumer per partition."""

    def __init__(self, topic: Topic, kafka: Mapping[str, str]) -> None:
        super().__init__(topic)
        self._kafka = kafka
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
        if silent or not self._topic.compacted:
            return super().missing(part, silent)
        partition, begin, end = int(part["partition"]), int(part["from_offset"]), int(part["to_offset"])
        where = f"{self._name} partition {partition} offsets {begin} to {end}, whose cleanup.policy is compact"
        return RecordsCompacted(where, self._gone)

    def _gone(self, log: RoundLogs) -> int:
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


class TopicKind(SourceKind):
    gone = "of a topic that is not there any more"

    def topic(self, terms: Terms, schema: Mapping[str, Any] | None, given: Given) -> Topic | None:
        return given.topic if given.topic.topic_id == terms.topic_id else None

    def reader(self, terms: Terms, schema: Schema, given: Given) -> RecordReader:
        now = given.topic
        if now.topic_id != terms.topic_id:
            raise RecordsGone(
                f"its records were those of {now.name} with the topic id {terms.topic_id}; "
                f"that topic was deleted and made again as {now.topic_id}"
            )
        return _TopicReader(now, given.kafka)

    def name_of(self, identity: str, partition: int, given: Given) -> str | None:
        return given.topic.name if given.topic.topic_id == identity else None

    def progress(self, manifest: Manifest, topic_id: str | None, ends: Sequence[int]) -> Progress:
        offsets = [at.offset for at in manifest.positions.partitions]
        offsets += [0] * (len(ends) - len(offsets))  # partitions added since
        lags = [max(0, end - offset) for end, offset in zip(ends, offsets, strict=False)]
        return offsets, lags if topic_id == manifest.positions.topic_id else None

    def check_kept(self, where: str, seen: Positions, topic: str, admin: Admin) -> None:
        found = admin.topic_ids([topic])[topic]
        if found != seen.topic_id:
            raise UserMistake(
                f"{topic}: expected topic id {seen.topic_id}, whose records {where}, got {found or 'no such topic'}: "
                f"its positions say nothing of these records; {SAY_POSITIONS}"
            )


SOURCE = TopicKind()
