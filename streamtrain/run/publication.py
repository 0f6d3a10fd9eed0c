"""One publication: a snapshot, the log of its rounds and the positions after them. What keeps it is a publisher's.

Used by the coordinator.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from streamtrain.compute.early_stopping import best_version
from streamtrain.compute.snapshot import model_payload, trainer_payload
from streamtrain.compute.state import Layout
from streamtrain.job import Job
from streamtrain.run.lineage import Lineage
from streamtrain.run.round_log import Columns, positions_after
from streamtrain.topics import manifest, named_schemas, rounds, snapshots
from streamtrain.topics.manifest import Manifest, Position, Run, Slot
from streamtrain.topics.rounds import RoundLog
from streamtrain.topics.terms import Terms, columns_digest, model_digest


@dataclass(frozen=True)
class Assembled:
    """A publication, but for its dead letters."""

    snapshot: snapshots.Publication
    columns: Columns
    positions: list[Position]
    log: RoundLog

    @property
    def bytes(self) -> int:
        """Returns the size of the snapshot and of the log in bytes."""
        return self.snapshot.size + self.columns.nbytes


@dataclass(frozen=True)
class Assembler:
    """An assembler of publications. It holds what stays the same from one publication of a run to the next."""

    job: Job
    run: Run
    layout: Layout
    slot: Slot
    build: str

    def assemble(
        self,
        lineage: Lineage,
        state: npt.NDArray[np.uint8],
        last_round: int,
        columns: Columns,
        metrics: Mapping[str, Any],
        worker_deaths: int = 0,
        created_ms: int | None = None,
    ) -> Assembled:
        """The publication of what follows `lineage`, made at `created_ms` or now; `state` is read here and not needed
        afterwards.

        A publication without a round begins a lineage: it has no log, and its manifest begins chain and counts.
        """
        positions = positions_after(lineage.positions, columns.ranges)
        log = self._log(lineage, columns, metrics, worker_deaths, created_ms)
        archive = self.job.publish.archive
        snapshot = snapshots.publish(
            self._manifest(lineage, positions, last_round, log),
            model_payload(self.layout, state),
            trainer_payload(self.layout, state),
            self.job.publish.keep,
            None if archive is None else archive.keep,
        )
        return Assembled(snapshot, columns, positions, replace(log, digest=snapshot.digest))

    def first(self, lineage: Lineage) -> Manifest:
        """The manifest that begins `lineage`, but for its payloads and its shelf."""
        positions, log = lineage.positions, self._log(lineage, Columns.empty(), lineage.metrics)
        return self._manifest(lineage, positions, lineage.round, log)

    def _log(
        self,
        lineage: Lineage,
        columns: Columns,
        metrics: Mapping[str, Any],
        worker_deaths: int = 0,
        created_ms: int | None = None,
    ) -> RoundLog:
        """But for the digest of the snapshot, whose manifest takes the log's own."""
        return RoundLog(
            job=self.job.name,
            lineage=lineage.id,
            run=self.run,
            version=lineage.version + 1,
            digest=b"",
            terms=(self._terms(lineage, int(columns.rounds["round"][0])),) if len(columns.rounds) else (),
            metrics=metrics,
            created_ms=time.time_ns() // 1_000_000 if created_ms is None else created_ms,
            worker_deaths=worker_deaths,
            rounds=columns.rounds,
            slots=columns.slots,
            ranges=columns.ranges,
            schemas=np.frombuffer(named_schemas.encode(columns.schemas), rounds.BYTE_DTYPE),
        )

    def _terms(self, lineage: Lineage, first_round: int) -> Terms:
        spec, train = self.job.model_spec(), self.job.train
        return Terms(
            first_round=first_round,
            learning_rate=self.job.schedule,
            optimizer=spec["optimizer"],
            average_optimizer_state=train.average_optimizer_state,
            averaging_frequency=self.job.rounds.averaging_frequency,
            workers=train.workers,
            slot=self.slot,
            batch_growth=self._batch_growth(),
            format=self.job.records.named,
            columns_digest=columns_digest(self.job.schema.to_dict()),
            model_digest=model_digest(spec),
            topic_id=lineage.topic_id,
            seed=lineage.seed,
            build=self.build,
        )

    def _batch_growth(self) -> Mapping[str, Any]:
        rows = self.job.train.batch_growth
        if rows is None:
            return {"name": "off"}
        return {"name": "rows_seen", "rows": rows, "min_rows": self.job.rounds.min_batch_rows}

    def _manifest(self, lineage: Lineage, positions: list[Position], last_round: int, log: RoundLog) -> Manifest:
        begins = not len(log.rounds)
        best = best_version(log.metrics)
        return Manifest(
            job=self.job.name,
            version=log.version,
            lineage=lineage.id,
            parent=lineage.parent,
            run=self.run,
            round=last_round,
            positions=manifest.Positions(lineage.topic_id, tuple(positions)),
            job_settings=self.job.effective(),
            config_digest=self.job.digest(),
            seed=lineage.seed,
            workers=self.job.train.workers,
            slot=self.slot,
            build=self.build,
            model_spec=self.job.model_spec(),
            schema=self.job.schema.to_dict(),
            metrics=log.metrics,
            untrained=lineage.untrained and last_round < 0,
            rows_seen=lineage.rows_seen + log.rows_trained,
            created_ms=log.created_ms,
            chain=rounds.first_chain(lineage.id) if begins else rounds.chain_after(lineage.chain, log),
            counts=rounds.counts_after(lineage.counts, log),
            gaps=lineage.gaps,
            archived=last_round >= 0 and best != log.version and self._archive_is_due(lineage, log.created_ms),
            best=best,
            restored=lineage.restored,
            imported=lineage.imported,
            kept=lineage.kept,
        )

    def _archive_is_due(self, lineage: Lineage, now_ms: int) -> bool:
        """Whatever run wrote the newest archived snapshot; one from the future of a clock set back does not count."""
        archive = self.job.publish.archive
        if archive is None:
            return False
        archived_ms = max((entry.created_ms for entry in lineage.kept if entry.archived), default=0)
        return not 0 <= now_ms - archived_ms < archive.every_s * 1000


def adopt(lineage: Lineage, assembled: Assembled, offset: int) -> Lineage:
    """The lineage once the transaction is committed with the manifest at `offset`."""
    manifest = assembled.snapshot.manifest
    after = replace(
        lineage,
        round=manifest.round,
        rows_seen=manifest.rows_seen,
        positions=assembled.positions,
        metrics=dict(manifest.metrics),
        chain=manifest.chain,
        counts=manifest.counts,
    )
    after.published(manifest, assembled.snapshot.digest, offset)
    return after


def score_after_averaging(progress: Mapping[str, Any]) -> dict[str, float]:
    """The newest mean's loss on its round's last batch, per weight, by the arena's account."""
    weight = progress["score_weight_sum"]
    return {"loss": progress["score_loss_sum"] / weight, "weight": weight} if weight else {}
