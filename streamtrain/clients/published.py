"""One publication as its round log tells it, and how a run ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamtrain.topics.manifest import Run
from streamtrain.topics.publication_logs import RoundLogs

Metrics = Mapping[str, Any]  # total, window: each the figures of the job's loss by name


@dataclass(frozen=True)
class RunEnded:
    """The end of a run. The exit code and time are None if it was killed or replaced and could not report them."""

    reason: str
    exit_code: int | None = None
    ended_ms: int | None = None


@dataclass(frozen=True)
class Published:
    """One publication, as its round log tells it. Times are Unix times in ms."""

    version: int
    created_ms: int
    newest_event_ms: int  # -1 where no row has a time
    lineage: str
    run: int
    rounds: int
    first_round: int
    updates: int  # batches that changed the parameters
    rows: int  # trained
    dead: int
    filtered: int
    tombstones: int
    rows_per_second: float | None  # since the publication before it, if that is of the same run
    loss: float | None  # mean over these rows' weights, each scored before it was learned
    metrics: Metrics
    learning_rate: Mapping[str, Any]  # of many hosts, the first one's, as `build`
    workers: int  # of all hosts
    worker_deaths: int  # of the run so far
    build: str
    run_end: RunEnded | None = None  # on a run's last publication; None while it may be running


def published_of(log: RoundLogs, before: tuple[Run, Published] | None = None) -> Published:
    """Returns what a log reports. `before`: the publication before it, and its run."""
    slots, terms = log.slots, log.first.terms[-1]
    weight = float(slots["weight_sum"].sum())
    elapsed_ms = log.created_ms - before[1].created_ms if before is not None and before[0] == log.run else 0
    return Published(
        version=log.version,
        created_ms=log.created_ms,
        newest_event_ms=log.newest_event_ms,
        lineage=log.lineage,
        run=log.run.number,
        rounds=len(log.rounds),
        first_round=int(log.rounds["round"][0]),
        updates=int(np.count_nonzero(slots["weight_sum"])),
        rows=log.rows_trained,
        dead=int(slots["dead"].sum(dtype=np.int64)),
        filtered=int(slots["filtered"].sum(dtype=np.int64)),
        tombstones=int(slots["tombstones"].sum(dtype=np.int64)),
        rows_per_second=1000 * log.rows_trained / elapsed_ms if elapsed_ms > 0 else None,
        loss=float(slots["loss_sum"].sum()) / weight if weight > 0 else None,
        metrics=log.metrics,
        learning_rate=terms.learning_rate,
        workers=log.workers,
        worker_deaths=log.worker_deaths,
        build=terms.build,
    )
