"""The records topic as a record source: partitions and offsets are Kafka's, its identity is the topic id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from streamtrain.errors import OR_FRESH, UserMistake
from streamtrain.files.found import FoundFile
from streamtrain.job import Job
from streamtrain.kafka.admin import Admin, TopicState
from streamtrain.kafka.late_offsets import LateOffsets
from streamtrain.log import get_logger
from streamtrain.record_sources.file_source import FileRecordSource, check_read
from streamtrain.record_sources.record_source import Gaps, Intake, RecordSource
from streamtrain.record_sources.source_changes import left_topic, list_files, move
from streamtrain.topics.manifest import Position, Positions

log = get_logger(__name__)
_MAX_PARTITIONS = 4  # partitions of a topic in an error's text


def warn_of_open_transaction(admin: Admin, topic: str, partitions: int) -> None:
    """Logs how many offsets a run up to the topic's end leaves out, where there are such: they may hold committed
    records."""
    behind = dict(enumerate(admin.behind_open_transaction(topic, partitions)))
    if counts := ", ".join(f"{count:,} in partition {at}" for at, count in behind.items() if count):
        log.warning(
            f"{topic}: an open transaction hides offsets ({counts}); this run ends before them, and a later one reads "
            "them when the transaction is committed or aborted (kafka-transactions.sh find-hanging)"
        )


class TopicRecordSource:
    """A `RecordSource`."""

    def __init__(self, job: Job, consumer: Mapping[str, str], admin: Admin) -> None:
        self._job, self._consumer, self._admin = job, consumer, admin
        self._topic = str(job.topic("records").name)
        self._offsets: LateOffsets | None = None

    def name_of(self, partition: int) -> str:
        return self._topic

    def intake(self, until_end: bool) -> Intake:
        """`until_end`: up to where each partition ends now."""
        _, partitions = records_topic(self._admin, self._topic)
        ends = enumerate(self._admin.last_stable(self._topic, partitions)) if until_end else ()
        if until_end:
            warn_of_open_transaction(self._admin, self._topic, partitions)
        config = {
            "kafka": dict(self._consumer),
            "topic": self._topic,
            "format": self._job.records.named,
            "registry": dict(self._job.registry.properties),
            "schema": self._job.schema.to_dict(),
            "until_end": until_end,
            "end_offsets": [[partition, offset] for partition, offset in ends],
        }
        return Intake("ingest", config, partitions)

    def begin(self) -> tuple[Positions, Gaps]:
        topic_id, partitions = records_topic(self._admin, self._topic)
        starts = start_offsets(self._job.records.start, self._admin, self._topic, partitions)
        return Positions(topic_id, tuple(Position(offset) for offset in starts)), ()

    def go_on(self, version: int, seen: Positions, known: Gaps, accept_gap: bool = False) -> tuple[Positions, Gaps]:
        """Asked at a start, and while training as soon as the records cannot be read on.

        After files it goes on where the topic was left for them, or begins.
        """
        if not list_files(known, seen.topic_id):
            return self._go_on(version, seen, accept_gap)
        check_read(version, seen, known, accept_gap)
        left = left_topic(known) or self.begin()[0]
        positions, gaps = self._go_on(version, left, accept_gap)
        return positions, (move("read on in the topic", seen, left), *gaps)

    def _go_on(self, version: int, seen: Positions, accept_gap: bool = False) -> tuple[Positions, Gaps]:
        topic, admin = self._topic, self._admin
        state = admin.describe([topic])[topic]
        if state is None:
            raise UserMistake(
                f"{topic}: snapshot {version} cannot be continued: {_expected(seen)}, found no such topic: it was "
                f"deleted; make it with 'streamtrain topics create' and go on with --accept-gap; {OR_FRESH}"
            )
        if state.topic_id == seen.topic_id:
            positions, gaps = _moved(list(seen.partitions), admin, topic, state.partitions)
        else:
            positions, gaps = _restart_at_earliest(seen, admin, topic, state)
        if gaps and not accept_gap:
            text = "; ".join(_describe(gap) for gap in gaps)
            raise UserMistake(
                f"{topic}: snapshot {version} cannot be continued without a gap: {text}; "
                f"go on with --accept-gap, which keeps the model and records the gap in the manifest; {OR_FRESH}"
            )
        return Positions(state.topic_id, tuple(positions)), tuple(gaps)

    def check(self, version: int, seen: Positions) -> None:
        """A topic deleted and made again would be read on in silence; the start's check names the gap."""
        if self._admin.topic_ids([self._topic])[self._topic] != seen.topic_id:
            self._go_on(version, seen)

    def trained(self, positions: Sequence[Position]) -> None:
        """For tools that show a group's lag."""
        if self._offsets is None:
            self._offsets = LateOffsets(self._consumer, self._job.name, self._topic)
        self._offsets.commit([position.offset for position in positions])


def record_source_of(
    job: Job, consumer: Mapping[str, str], admin: Admin, files: Sequence[FoundFile] | None
) -> RecordSource:
    """These files, or the records topic where there are none. `consumer`: Job.kafka_consumer() of the whole job."""
    return FileRecordSource(job, files) if files else TopicRecordSource(job, consumer, admin)


def records_topic(admin: Admin, topic: str) -> tuple[str, int]:
    """(topic id, partitions); UserMistake where it does not exist."""
    state = admin.describe([topic])[topic]
    if state is None:
        raise UserMistake(f"{topic}: no such topic; make it with 'streamtrain topics create' or check [topics] records")
    return state.topic_id, state.partitions


def start_offsets(start: str, admin: Admin, topic: str, partitions: int) -> list[int]:
    """Returns the offset where each partition begins for `start`, a value of records.start."""
    if start == "earliest":
        return admin.earliest(topic, partitions)
    if start == "latest":
        return admin.last_stable(topic, partitions)
    timestamp_ms = int(start) if start.isdigit() else int(datetime.fromisoformat(start).timestamp() * 1000)
    return admin.at_time(topic, partitions, timestamp_ms)


def _restart_at_earliest(
    seen: Positions, admin: Admin, topic: str, state: TopicState
) -> tuple[list[Position], list[dict[str, Any]]]:
    earliest = admin.earliest(topic, state.partitions)
    gap = {
        "reason": "the topic was deleted and made again",
        "from": [list(position) for position in seen.partitions],
        "to": earliest,
        "topic_id": [seen.topic_id, state.topic_id],
    }
    return [Position(offset) for offset in earliest], [gap]


def _moved(
    known: list[Position], admin: Admin, topic: str, partitions: int
) -> tuple[list[Position], list[dict[str, Any]]]:
    earliest, ends = admin.earliest(topic, partitions), admin.high_watermarks(topic, partitions)
    gaps: list[dict[str, Any]] = []
    if len(known) > partitions:
        gaps.append(
            {
                "reason": "the topic has fewer partitions than the snapshot has seen",
                "from": len(known),
                "to": partitions,
            }
        )
    positions = []
    for partition in range(partitions):
        position = known[partition] if partition < len(known) else Position(0)
        if position.offset < earliest[partition] and partition < len(known):
            reason = "records were removed before they were trained (retention)"
        elif position.offset > ends[partition]:
            reason = "the partition ends before the position"
        else:
            positions.append(position if position.offset >= earliest[partition] else Position(earliest[partition]))
            continue
        gaps.append({"reason": reason, "partition": partition, "from": list(position), "to": [earliest[partition], 0]})
        positions.append(Position(earliest[partition]))
    return positions, gaps


def _describe(gap: Mapping[str, Any]) -> str:
    if "topic_id" in gap:
        was, now = gap["topic_id"]
        seen = Positions(was, tuple(Position(*at) for at in gap["from"]))
        return f"{gap['reason']}: {_expected(seen)}, found topic id {now}, beginning at {_places(gap['to'])}"
    where = f"partition {gap['partition']}: " if "partition" in gap else ""
    return f"{where}{gap['reason']}: expected to read on at {gap['from']}, found {gap['to']}"


def _expected(seen: Positions) -> str:
    return f"expected topic id {seen.topic_id}, to read on at {_places([at.offset for at in seen.partitions])}"


def _places(offsets: Sequence[int]) -> str:
    """`partition 0 offset 81, partition 1 offset 90`, and how many more there are."""
    places = [f"partition {partition} offset {offset}" for partition, offset in enumerate(offsets[:_MAX_PARTITIONS])]
    more = len(offsets) - len(places)
    return ", ".join(places) + (f" and {more} more" if more else "")
