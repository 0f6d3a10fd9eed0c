"""One publication: snapshot, round log and offsets as messages of one transaction, to which dead letters are added.

Used by the coordinator.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from streamtrain.compute.memory.arena import PublishedLayout
from streamtrain.compute.snapshot import model_payload, trainer_payload
from streamtrain.job import Job
from streamtrain.kafka.transaction import Batch
from streamtrain.processes._lineage import Lineage
from streamtrain.processes._round_log import Columns, positions_after
from streamtrain.topics import control, rounds, snapshots
from streamtrain.topics.snapshots import Manifest, Position, Run, Slot


@dataclass(frozen=True)
class Assembled:
    """A publication before its transaction, but for its dead letters."""

    batch: Batch
    snapshot: snapshots.Publication
    columns: Columns
    positions: list[Position]


@dataclass(frozen=True)
class Publisher:
    """What stays the same from one publication of a run to the next."""

    job: Job
    run: Run
    layout: PublishedLayout
    slot: Slot
    build: str
    topics: Mapping[str, str]  # by key

    def assemble(
        self,
        lineage: Lineage,
        state: npt.NDArray[np.uint8],
        last_round: int,
        columns: Columns,
        metrics: Mapping[str, Any],
    ) -> Assembled:
        """What one transaction writes but for dead letters; `state` is read here and not needed afterwards."""
        positions = positions_after(lineage.positions, columns.ranges)
        trained = int(columns.slots["trained"].sum(dtype=np.int64))
        manifest = self._manifest(lineage, positions, last_round, trained, metrics)
        archive = self.job.publish.archive
        snapshot = snapshots.publish(
            manifest,
            model_payload(self.layout, state),
            trainer_payload(self.layout, state),
            self.job.publish.keep,
            None if archive is None else archive.keep,
        )
        log = rounds.RoundLog(
            self.job.name,
            lineage.id,
            self.run,
            manifest.version,
            snapshot.digest,
            columns.rounds,
            columns.slots,
            columns.ranges,
        )
        records = self.topics["records"]
        messages = [(self.topics["rounds"], message) for message in rounds.messages(log)]
        newest = control.Newest(manifest.version, snapshot.digest, manifest.lineage)
        messages.append((self.topics["control"], control.newest_message(newest)))
        messages += [(self.topics["snapshots"], message) for message in snapshot.messages]  # the manifest comes last
        offsets = {(records, partition): position.offset for partition, position in enumerate(positions)}
        return Assembled(Batch(messages, offsets, f"snapshot {manifest.version}"), snapshot, columns, positions)

    def _manifest(
        self, lineage: Lineage, positions: list[Position], last_round: int, trained: int, metrics: Mapping[str, Any]
    ) -> Manifest:
        now_ms = time.time_ns() // 1_000_000
        archive = self.job.publish.archive
        archived = archive is not None and now_ms - lineage.archived_ms >= archive.every_s * 1000
        return Manifest(
            job=self.job.name,
            version=lineage.version + 1,
            lineage=lineage.id,
            parent=lineage.parent,
            run=self.run,
            round=last_round,
            positions=snapshots.Positions(lineage.topic_id, tuple(positions)),
            job_settings=self.job.effective(),
            config_digest=self.job.digest(),
            seed=lineage.seed,
            workers=self.job.train.workers,
            slot=self.slot,
            build=self.build,
            model_spec=self.job.model_spec(),
            schema=self.job.schema.to_dict(),
            metrics=metrics,
            untrained=lineage.untrained and last_round < 0,
            rows_seen=lineage.rows_seen + trained,
            created_ms=now_ms,
            gaps=lineage.gaps,
            archived=archived and last_round >= 0,
            restored=lineage.restored,
            kept=lineage.kept,
        )


def adopt(lineage: Lineage, assembled: Assembled, offset: int) -> Lineage:
    """The lineage once the transaction is committed with the manifest at `offset`."""
    manifest = assembled.snapshot.manifest
    after = replace(
        lineage,
        round=manifest.round,
        rows_seen=manifest.rows_seen,
        positions=assembled.positions,
        metrics=dict(manifest.metrics),
    )
    after.published(manifest, assembled.snapshot.digest, offset)
    return after
