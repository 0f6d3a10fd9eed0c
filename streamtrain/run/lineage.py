"""The start of a run: the newest snapshot or a fresh lineage, at positions that the record source still has.

Used by the coordinator, after fencing and before READY.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from streamtrain.compute.early_stopping import NAME
from streamtrain.errors import OR_FRESH, UserMistake
from streamtrain.job import Job
from streamtrain.job.new_classes import new_classes, with_new_classes
from streamtrain.record_sources.record_source import Gaps, RecordSource
from streamtrain.topics.chunks import Located, TopicContents
from streamtrain.topics.manifest import Counts, Imported, Kept, Manifest, Parent, Position, Positions, Restored
from streamtrain.topics.shelves import kept_after


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
    imported: tuple[Imported, ...] = ()
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
    """The command line's flags for the start."""

    fresh: bool = False
    restore: int | None = None
    accept_gap: bool = False
    add_classes: Collection[str] = ()


def first_lineage(job: Job, positions: Positions, gaps: Gaps = ()) -> Lineage:
    """A new lineage of a job that has none, which begins at `positions`."""
    return Lineage(
        id=uuid.uuid4().hex,
        seed=job.train.seed,
        round=-1,
        rows_seen=0,
        positions=list(positions.partitions),
        topic_id=positions.topic_id,
        gaps=gaps,
    )


def fresh_lineage(job: Job, record_source: RecordSource, contents: TopicContents) -> Lineage:
    """A new lineage where the record source begins; versions go on above all there are."""
    positions, gaps = record_source.begin()
    lineage = first_lineage(job, positions, gaps)
    if contents.newest is not None:
        lineage.published(*contents.newest)
    lineage.version, lineage.kept, lineage.untrained = contents.version, contents.kept, True
    return lineage


def resumed_lineage(record_source: RecordSource, newest: Located, accept_gap: bool) -> Lineage:
    """The newest snapshot's lineage, where its positions can still be read; UserMistake names the gap otherwise."""
    manifest, digest, offset = newest
    positions, gaps = record_source.go_on(manifest.version, manifest.positions, manifest.gaps, accept_gap)
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
        imported=manifest.imported,
    )
    lineage.published(manifest, digest, offset)
    return lineage


def restored_lineage(record_source: RecordSource, newest: Located, source: Located, accept_gap: bool) -> Lineage:
    """A new lineage: the parameters of `wanted` at the newest snapshot's positions, published as the next version."""
    lineage = resumed_lineage(record_source, newest, accept_gap)
    manifest = source.manifest
    lineage.id = uuid.uuid4().hex
    lineage.seed, lineage.round, lineage.rows_seen = manifest.seed, manifest.round, manifest.rows_seen
    lineage.untrained = manifest.untrained
    lineage.metrics = dict(manifest.metrics)
    lineage.counts = Counts()
    lineage.imported = manifest.imported
    lineage.parent = Parent(manifest.version, source.digest, source.offset)
    lineage.restored = Restored(newest[0].version, newest[1])
    return lineage


def imported_lineage(manifest: Manifest, of: Imported, positions: Positions, gaps: Gaps) -> Lineage:
    """A new lineage in a job that has none: the parameters of `wanted`, which lies elsewhere, as the version after it.

    It goes on at `positions`.
    """
    return Lineage(
        id=uuid.uuid4().hex,
        seed=manifest.seed,
        round=manifest.round,
        rows_seen=manifest.rows_seen,
        positions=list(positions.partitions),
        topic_id=positions.topic_id,
        gaps=gaps,
        imported=(*manifest.imported, of),
        version=manifest.version,
        untrained=manifest.untrained,
        metrics={name: value for name, value in manifest.metrics.items() if name != NAME},  # its best is not here
    )


def misfits(job: Job, manifest: Manifest) -> list[str]:
    """Returns the differences between the columns, model and optimizer of a snapshot and those of the job, one a
    line."""
    theirs = manifest.job_settings
    differences = job.differences(theirs)
    if theirs.get("optimizer", {}).get("name") != job.optimizer.name:
        differences.append(
            f"optimizer.name: snapshot {theirs.get('optimizer', {}).get('name')!r}, job {job.optimizer.name!r}"
        )
    averaging = manifest.model_spec.get("averaging")
    if averaging != job.train.averaging.spec:
        differences.append(f"train.averaging: snapshot {averaging}, job {job.train.averaging.spec}")
    scheduled = [spec.get("schedule") for spec in (manifest.model_spec, job.model_spec())]
    if scheduled[0] != scheduled[1]:
        was, now = ("none" if each is None else each for each in scheduled)
        differences.append(f"optimizer.schedule (of those that keep where they stand): snapshot {was}, job {now}")
    averaged = theirs.get("train", {}).get("average_optimizer_state", True)
    if averaged != job.train.average_optimizer_state:
        differences.append(
            f"train.average_optimizer_state: snapshot {averaged}, job {job.train.average_optimizer_state}"
        )
    elif not averaged and manifest.workers != job.train.workers:
        differences.append(
            f"train.workers (each keeps its own optimizer state): snapshot {manifest.workers}, job {job.train.workers}"
        )
    return differences


def check_fit(job: Job, manifest: Manifest, add_classes: Collection[str] = ()) -> list[str]:
    """Returns the classes that the job has at the end of a label's, and the snapshot has not.

    Raises UserMistake with the differences if columns or model differ elsewhere, and if there are `add_classes` but a
    new class is not one of them.
    """
    added = new_classes(job, manifest.job_settings)
    names = [name for each in added.values() for name in each]
    fits = not added or not misfits(job, replace(manifest, job_settings=with_new_classes(job, manifest.job_settings)))
    if added and fits:
        if add_classes and not set(names) <= {*add_classes}:
            raise UserMistake(
                f"{job.name}: the job file adds {', '.join(names)} to the classes that snapshot {manifest.version} has "
                f"of {', '.join(added)}, --add-classes {', '.join(add_classes)}; name all of them, or leave it out"
            )
        return names
    if differences := misfits(job, manifest):
        raise UserMistake(
            f"{job.name}: snapshot {manifest.version} does not fit the job: {'; '.join(differences)}; "
            f"put the job file back ('streamtrain snapshots show' tells what it was); {OR_FRESH}"
        )
    return []
