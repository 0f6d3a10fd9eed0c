"""Where a run starts: the newest snapshot, or a fresh lineage; with positions that the records topic still has.

Used by the coordinator, after fencing and before READY.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from streamtrain.errors import UserMistake
from streamtrain.job import Job
from streamtrain.kafka.admin import Admin, TopicState
from streamtrain.kafka.chunks import Located
from streamtrain.kafka.snapshots import Held
from streamtrain.topics.manifest import Counts, Kept, Manifest, Parent, Position, Positions, Restored
from streamtrain.topics.shelves import kept_after

_MOST_TOLD = 4  # partitions of a topic in an error's text


@dataclass
class Lineage:
    """The state of the job between publications; `parent` is the newest published snapshot."""

    id: str
    seed: int
    round: int
    rows_seen: int
    positions: list[Position]
    topic_id: str
    gaps: tuple[Mapping[str, Any], ...] = ()
    parent: Parent | None = None
    kept: tuple[Kept, ...] = ()
    restored: Restored | None = None
    version: int = 0  # the newest published
    untrained: bool = True
    dead_rows: int = 0
    metrics: dict[str, Any] = field(default_factory=dict)
    chain: bytes = b""  # of the newest published; a lineage's first publication begins it
    counts: Counts = field(default_factory=Counts)

    def published(self, manifest: Manifest, digest: bytes, offset: int) -> None:
        """Takes `manifest`, committed at `offset`, as the newest."""
        self.version = manifest.version
        self.parent = Parent(manifest.version, digest, offset)
        self.kept = kept_after(manifest, digest, offset)
        self.untrained = manifest.untrained
        self.restored = None


@dataclass(frozen=True)
class StartFlags:
    """What the command line says about the start."""

    fresh: bool = False
    restore: int | None = None
    accept_gap: bool = False


def fresh_lineage(job: Job, admin: Admin, held: Held) -> Lineage:
    """A new lineage at the job's `start`; versions go on above all there are."""
    topic = job.topic("records").name
    assert topic is not None
    topic_id, partitions = records_topic(admin, topic)
    lineage = Lineage(
        id=uuid.uuid4().hex,
        seed=job.train.seed,
        round=-1,
        rows_seen=0,
        positions=[Position(offset) for offset in _start_offsets(job.records.start, admin, topic, partitions)],
        topic_id=topic_id,
    )
    if held.newest is not None:
        lineage.published(*held.newest)
    lineage.version, lineage.kept, lineage.untrained = held.version, held.kept, True
    return lineage


def resumed_lineage(job: Job, admin: Admin, newest: Located, accept_gap: bool) -> Lineage:
    """The newest snapshot's lineage, where its positions can still be read; UserMistake names the gap otherwise."""
    manifest, digest, offset = newest
    positions, gaps = continued(job, admin, manifest.version, manifest.positions, accept_gap)
    lineage = Lineage(
        id=manifest.lineage,
        seed=manifest.seed,
        round=manifest.round,
        rows_seen=manifest.rows_seen,
        positions=list(positions.partitions),
        topic_id=positions.topic_id,
        gaps=(*manifest.gaps, *gaps),
        metrics=dict(manifest.metrics),
        chain=manifest.chain,
        counts=manifest.counts,
    )
    lineage.published(manifest, digest, offset)
    return lineage


def restored_lineage(job: Job, admin: Admin, newest: Located, wanted: Located, accept_gap: bool) -> Lineage:
    """A new lineage: the parameters of `wanted` at the newest snapshot's positions, published as the next version."""
    lineage = resumed_lineage(job, admin, newest, accept_gap)
    manifest = wanted.manifest
    lineage.id = uuid.uuid4().hex
    lineage.seed, lineage.round, lineage.rows_seen = manifest.seed, manifest.round, manifest.rows_seen
    lineage.untrained = manifest.untrained
    lineage.metrics = dict(manifest.metrics)
    lineage.counts = Counts()
    lineage.parent = Parent(manifest.version, wanted.digest, wanted.offset)
    lineage.restored = Restored(newest[0].version, newest[1])
    return lineage


def records_topic(admin: Admin, topic: str) -> tuple[str, int]:
    """(topic id, partitions); UserMistake where it does not exist."""
    state = admin.describe([topic])[topic]
    if state is None:
        raise UserMistake(f"{topic}: no such topic; make it with 'streamtrain topics create' or check [topics] records")
    return state.topic_id, state.partitions


def _start_offsets(start: str, admin: Admin, topic: str, partitions: int) -> list[int]:
    if start == "earliest":
        return admin.earliest(topic, partitions)
    if start == "latest":
        return admin.last_stable(topic, partitions)
    timestamp_ms = int(start) if start.isdigit() else int(datetime.fromisoformat(start).timestamp() * 1000)
    return admin.at_time(topic, partitions, timestamp_ms)


def continued(
    job: Job, admin: Admin, version: int, seen: Positions, accept_gap: bool = False
) -> tuple[Positions, list[dict[str, Any]]]:
    """Where to read on after what snapshot `version` has `seen`, and the gaps there; without `accept_gap` UserMistake.

    Asked at a start, and while training as soon as the records cannot be read on.
    """
    topic = job.topic("records").name
    assert topic is not None
    state = admin.describe([topic])[topic]
    if state is None:
        raise UserMistake(
            f"{topic}: snapshot {version} cannot be continued: {_expected(seen)}, found no such topic: it was deleted; "
            "make it with 'streamtrain topics create' and go on with --accept-gap, or start over with --fresh"
        )
    if state.topic_id == seen.topic_id:
        positions, gaps = _moved(list(seen.partitions), admin, topic, state.partitions)
    else:
        positions, gaps = _made_again(seen, admin, topic, state)
    if gaps and not accept_gap:
        told = "; ".join(_told(gap) for gap in gaps)
        raise UserMistake(
            f"{topic}: snapshot {version} cannot be continued without a gap: {told}; "
            "go on with --accept-gap (the gap is recorded in the manifest), or start over with --fresh"
        )
    return Positions(state.topic_id, tuple(positions)), gaps


def _made_again(
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


def _told(gap: Mapping[str, Any]) -> str:
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
    told = [f"partition {partition} offset {offset}" for partition, offset in enumerate(offsets[:_MOST_TOLD])]
    more = len(offsets) - len(told)
    return ", ".join(told) + (f" and {more} more" if more else "")


def check_fit(job: Job, manifest: Manifest) -> None:
    """UserMistake with the differences where the newest snapshot's columns or model are not the job's."""
    theirs = manifest.job_settings
    differences = job.differences(theirs)
    if theirs.get("optimizer", {}).get("name") != job.optimizer.name:
        differences.append(
            f"optimizer.name: snapshot {theirs.get('optimizer', {}).get('name')!r}, job {job.optimizer.name!r}"
        )
    averaged = theirs.get("train", {}).get("average_optimizer_state", True)
    if averaged != job.train.average_optimizer_state:
        differences.append(
            f"train.average_optimizer_state: snapshot {averaged}, job {job.train.average_optimizer_state}"
        )
    elif not averaged and manifest.workers != job.train.workers:
        differences.append(
            f"train.workers (each keeps its own optimizer state): snapshot {manifest.workers}, job {job.train.workers}"
        )
    if differences:
        raise UserMistake(
            f"{job.name}: snapshot {manifest.version} does not fit the job: {'; '.join(differences)}; "
            "put the job file back, or start a new lineage with --fresh"
        )
