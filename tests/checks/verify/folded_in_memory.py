"""A job whose snapshots are folds of what many hosts contributed, as `verify` and `replay` read its topics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import numpy as np

from streamtrain._native import CloseReason
from streamtrain.run.publication import Assembled, Sync, round_terms
from streamtrain.run.round_log import Columns
from streamtrain.run.unpublished_dead_letters import rejected_letters
from streamtrain.topics.dead_letters import DeadLetter
from streamtrain.topics.manifest import Contribution, Slot
from streamtrain.topics.publication_logs import RoundLogs
from streamtrain.topics.rounds import RoundLog
from streamtrain.topics.terms import contribution_seed
from tests.checks.verify.topics_in_memory import WINDOW, GoodJob, Ingest, Partition

SYNC_SLOTS = 64   # that a host's ring has


@dataclass(frozen=True)
class Host:
    """A host with its partitions, of which the lowest may have no records."""

    name: str
    partitions: Sequence[int]
    workers: int = 1
    rate: float = 3e-3


class FoldedJob(GoodJob):
    """Runs begin with mode="many"; others go on as before."""

    inbox = 0
    sequence = 0

    def contribute(self, *hosts: Host, rejected: int | None = None, produce: bool = True) -> None:
        """Rows to each partition, and the fold of what the hosts make of all so far; each left batch `rejected` out."""
        if produce:
            self.produce(4)
        logs, letters = [], []
        for host in hosts:
            columns, its = self._round_of(host, rejected)
            if len(columns.rounds):
                logs.append(self._log_of(host, columns))
                letters += its
        logs.sort(key=lambda log: log.smallest_partition)
        logs = [replace(log, contribution=at, contributions=len(logs)) for at, log in enumerate(logs)]
        logs, metrics = self.learn(logs)
        self.written.clock_ms += 600
        logs = [replace(log, metrics=metrics, created_ms=self.written.clock_ms) for log in logs]
        self._write(self._folded(logs, logs[0]), letters)

    def _round_of(self, host: Host, rejected: int | None) -> tuple[Columns, list[DeadLetter]]:
        everywhere = self.written.partitions["records"]
        own = [each if at in host.partitions else Partition() for at, each in enumerate(everywhere)]
        positions, round_ = list(self.lineage.positions), self.lineage.round + 1
        ingest = Ingest(self.job, self.run.number, positions, round_, SYNC_SLOTS * host.workers, host.workers)
        ingest.read(own)
        columns, letters = ingest.publish(CloseReason.INTERVAL, rejected)
        letters += rejected_letters(columns, lambda _: self.written.name("records"), self.run.number)
        return columns, letters

    def _log_of(self, host: Host, columns: Columns) -> RoundLog:
        terms = replace(
            round_terms(self.job, Slot(1, 1), "", self.lineage.topic_id, 0, self.lineage.round + 1),
            averaging_frequency=SYNC_SLOTS, workers=host.workers, slot=Slot(self.job.train.batch_rows, 100),
            learning_rate={**self.job.schedule, "rate": host.rate},
            seed=contribution_seed(self.lineage.seed, min(host.partitions)) if host.name else self.lineage.seed,
            build="another build",
        )  # fmt: skip
        log = self.publisher._log(self.lineage, columns, {})
        return replace(log, terms=(terms,), host=host.name)

    def learn(self, logs: list[RoundLog]) -> tuple[list[RoundLog], Mapping[str, Any]]:
        """Moves the state on, and returns the logs with what came out of their batches, and the metrics."""
        self._state.view(np.float32)[0] += 0.25
        rows = sum(log.rows_trained for log in logs)
        self._window += rows
        closed = [{"log_loss": 0.5, "rows": self._window}] if self._window >= WINDOW else []
        for log in logs:
            log.rounds["closed_window"] = len(closed)
        self._window = 0 if closed else self._window
        total = {"log_loss": 0.5, "rows": self.lineage.rows_seen + rows}
        return logs, {"total": total, "window": {"log_loss": 0.5}, "windows": closed}

    def _assemble(self, columns: Columns, last: int, metrics: Any, deaths: int) -> Assembled:
        if self.mode == "one":
            return super()._assemble(columns, last, metrics, deaths)
        return self._folded([], self.publisher._log(self.lineage, columns, metrics))   # begins a lineage

    def _folded(self, logs: list[RoundLog], first: RoundLog) -> Assembled:
        self.inbox += 10
        contributions = tuple(self._contribution(log) for log in logs)
        sync = Sync(contributions, self.inbox, 2_000) if self.mode == "many" else Sync()
        round_, each = self.lineage.round + len(logs[:1]), RoundLogs(tuple(logs or [first]))
        return self.publisher._assembled(self.lineage, self._state, round_, each, sync)

    def _contribution(self, log: RoundLog) -> Contribution:
        self.sequence += 1
        life = sha256(log.host.encode()).hexdigest()[:32]
        head = sha256(b"head %d" % self.sequence).digest()
        return Contribution(log.host, life, self.sequence, head, log.rows_trained, log.weight)


def folded_job() -> FoldedJob:
    """One host, then many, of which one joins with a partition, one leaves and batches are left out; then one again,
    and many that go on from an older snapshot."""
    job = FoldedJob()
    job.begin()
    job.more()
    job.begin(mode="many")
    a, b = Host("a", [0], rate=1e-3), Host("b", [1], workers=2)
    job.contribute(a, b)
    job.contribute(b, a, rejected=1)
    job.add_partition()
    job.contribute(a, b, Host("c", [2]))
    job.predict()
    job.contribute(Host("a", [0, 2]), b)
    job.contribute(a, Host("d", [1, 2]))
    job.end()
    job.begin()
    job.more(4)
    job.begin(restore=4, mode="many")
    for _ in range(2):
        job.contribute(Host("a", [0, 1, 2]))
    job.begin(fresh=True, mode="many")
    job.contribute(Host("a", [0]), Host("b", [1, 2]))
    job.contribute(Host("a", [0]), Host("b", [1, 2]))
    return job
