"""One publication: a snapshot, the logs of its rounds and the positions after them. What keeps it is a publisher's.

Used by the coordinator.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

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
from streamtrain.topics.publication_logs import RoundLogs
from streamtrain.topics.rounds import RoundLog
from streamtrain.topics.terms import Terms, columns_digest, model_digest


@dataclass(frozen=True)
class Assembled:
    """A publication, but for its dead letters."""

    snapshot: snapshots.Publication
    columns: Columns  # of all its logs
    positions: list[Position]
    logs: RoundLogs

    @property
    def bytes(self) -> int:
        """Returns the size of the snapshot and of the logs in bytes."""
        return self.snapshot.size + self.columns.nbytes


@dataclass(frozen=True)
class Part:
    """One host's part of a publication of many."""

    host: str
    columns: Columns
    terms: Terms
    worker_deaths: int


class Sync(NamedTuple):
    """A manifest's fields of the hosts, where there are many."""

    contributions: tuple[manifest.Contribution, ...] = ()
    inbox: int | None = None  # the lowest offset that is still to be read of what they send
    interval_ms: int | None = None  # until the next snapshot


_ONE_HOST = Sync()


@dataclass(frozen=True)
class Assembler:
    """An assembler of publications. It holds what stays the same from one publication of a run to the next."""

    job: Job
    run: Run
    layout: Layout
    slot: Slot
    build: str
    first_sync: Sync = _ONE_HOST  # of a lineage's first publication

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
        log = self._log(lineage, columns, metrics, worker_deaths, created_ms)
        return self._assembled(lineage, state, last_round, RoundLogs((log,)), self.first_sync)

    def assemble_sync(
        self,
        lineage: Lineage,
        state: npt.NDArray[np.uint8],
        parts: Sequence[Part],
        metrics: Mapping[str, Any],
        sync: Sync,
    ) -> Assembled:
        """The publication of what many hosts have sent, one part each, as assemble()."""
        now_ms = time.time_ns() // 1_000_000
        logs = tuple(
            replace(
                self._log(lineage, part.columns, metrics, part.worker_deaths, now_ms),
                terms=(part.terms,), host=part.host, contribution=index, contributions=len(parts),
            )
            for index, part in enumerate(parts)
        )  # fmt: skip
        return self._assembled(lineage, state, lineage.round + 1, RoundLogs(logs), sync)

    def _assembled(
        self, lineage: Lineage, state: npt.NDArray[np.uint8], last_round: int, logs: RoundLogs, sync: Sync
    ) -> Assembled:
        positions = lineage.positions
        for log in logs:
            positions = positions_after(positions, log.ranges)
        archive = self.job.publish.archive
        snapshot = snapshots.publish(
            self._manifest(lineage, positions, last_round, logs, sync),
            model_payload(self.layout, state),
            trainer_payload(self.layout, state),
            self.job.publish.keep,
            None if archive is None else archive.keep,
        )
        columns = Columns.joined([Columns(log.rounds, log.slots, log.ranges) for log in logs])
        named = RoundLogs(tuple(replace(log, digest=snapshot.digest) for log in logs))
        return Assembled(snapshot, columns, positions, named)

    def first(self, lineage: Lineage) -> Manifest:
        """The manifest that begins `lineage`, but for its payloads and its shelf."""
        positions, log = lineage.positions, self._log(lineage, Columns.empty(), lineage.metrics)
        return self._manifest(lineage, positions, lineage.round, RoundLogs((log,)), self.first_sync)

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
            terms=self._terms(lineage, columns),
            metrics=metrics,
            created_ms=time.time_ns() // 1_000_000 if created_ms is None else created_ms,
            worker_deaths=worker_deaths,
            rounds=columns.rounds,
            slots=columns.slots,
            ranges=columns.ranges,
            schemas=np.frombuffer(named_schemas.encode(columns.schemas), rounds.BYTE_DTYPE),
        )

    def _terms(self, lineage: Lineage, columns: Columns) -> tuple[Terms, ...]:
        if not len(columns.rounds):
            return ()
        first_round = int(columns.rounds["round"][0])
        return (round_terms(self.job, self.slot, self.build, lineage.topic_id, lineage.seed, first_round),)

    def _manifest(
        self, lineage: Lineage, positions: list[Position], last_round: int, logs: RoundLogs, sync: Sync
    ) -> Manifest:
        log, chain, counts = logs.first, lineage.chain, lineage.counts
        begins = not len(log.rounds)
        for each in logs:
            chain, counts = rounds.chain_after(chain, each), rounds.counts_after(counts, each)
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
            rows_seen=lineage.rows_seen + logs.rows_trained,
            created_ms=log.created_ms,
            chain=rounds.first_chain(lineage.id) if begins else chain,
            counts=counts,
            gaps=lineage.gaps,
            archived=last_round >= 0 and best != log.version and self._archive_is_due(lineage, log.created_ms),
            best=best,
            restored=lineage.restored,
            imported=lineage.imported,
            kept=lineage.kept,
            contributions=sync.contributions,
            inbox=sync.inbox,
            interval_ms=sync.interval_ms,
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


def round_terms(job: Job, slot: Slot, build: str, topic_id: str, seed: int, first_round: int) -> Terms:
    """Returns what rounds of the job depend on beside their start and rows."""
    spec, train = job.model_spec(), job.train
    growth: Mapping[str, Any] = {"name": "off"}
    if train.batch_growth is not None:
        growth = {"name": "rows_seen", "rows": train.batch_growth, "min_rows": job.rounds.min_batch_rows}
    return Terms(
        first_round=first_round,
        learning_rate=job.schedule,
        optimizer=spec["optimizer"],
        average_optimizer_state=train.average_optimizer_state,
        averaging_frequency=job.rounds.averaging_frequency,
        workers=train.workers,
        slot=slot,
        batch_growth=growth,
        format=job.records.named,
        columns_digest=columns_digest(job.schema.to_dict()),
        model_digest=model_digest(spec),
        topic_id=topic_id,
        seed=seed,
        build=build,
    )
