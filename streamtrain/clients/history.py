"""A job's history from its round log and control topic alone: what each publication added, however many snapshots are
still kept. Joins no group and commits nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from streamtrain.kafka.admin import Admin
from streamtrain.kafka.control import ControlTopic
from streamtrain.kafka.errors import no_such_topic
from streamtrain.kafka.round_logs import round_logs
from streamtrain.topics import control, rounds
from streamtrain.topics.control import Control
from streamtrain.topics.manifest import Run
from streamtrain.topics.rounds import RoundLog

Metrics = Mapping[str, Any]  # total, window: each the figures of the job's loss by name


@dataclass(frozen=True)
class RunEnded:
    """How a run ended; where it could not say so, being killed or replaced, its exit code and time are not known."""

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
    learning_rate: Mapping[str, Any]
    workers: int
    worker_deaths: int  # of the run so far
    build: str
    run_end: RunEnded | None = None  # on a run's last publication; None while it may be running


def history(
    job: str, bootstrap: str, kafka: Mapping[str, object] | None = None, *, topic: str | None = None
) -> Iterator[Published]:
    """Every publication whose round log the topic still holds, in order, up to the topic's end at the call.

    `topic` is the name of the rounds topic where the job file renames it. Raises UserMistake where there is no such
    topic, KafkaUnreachable when no broker answers, CheckFailed for what is no round log.
    """
    settings = {**(kafka or {}), "bootstrap.servers": bootstrap}
    name = rounds.TOPIC.name(job, topic)
    if Admin(bootstrap, kafka).describe([name])[name] is None:
        raise no_such_topic(name, bootstrap)
    known = _control(job, bootstrap, kafka)
    before: tuple[Run, Published] | None = None
    for log in round_logs(settings, name):
        if before is not None:
            yield before[1] if before[0] == log.run else replace(before[1], run_end=_end(before[0], known, log.run))
        before = log.run, published_of(log, before)
    if before is not None:
        yield replace(before[1], run_end=_end(before[0], known))


def run_ends(job: str, bootstrap: str, kafka: Mapping[str, object] | None = None) -> dict[int, RunEnded | None]:
    """How each run ended that control knows, by number, also of those that published nothing. Raises as `history`."""
    known = _control(job, bootstrap, kafka)
    return {number: _end(entry.run, known) for number, entry in sorted(known.runs.items())}


def _control(job: str, bootstrap: str, kafka: Mapping[str, object] | None) -> Control:
    name = control.TOPIC.name(job)
    if Admin(bootstrap, kafka).describe([name])[name] is None:
        return Control()
    with ControlTopic({**(kafka or {}), "bootstrap.servers": bootstrap}, name) as runs:
        return runs.look()


def _end(run: Run, known: Control, published_next: Run | None = None) -> RunEnded | None:
    """How the run ended, by its own account or by the run that followed it."""
    end = known.ends.get(run.number)
    if end is not None and end.run == run:
        return RunEnded(end.reason, end.exit_code, end.ended_ms)
    runs = {*known.runs, *([] if published_next is None else [published_next.number])}
    followed_by = min((number for number in runs if number > run.number), default=None)
    return None if followed_by is None else RunEnded(f"without a word; run {followed_by} followed")


def published_of(log: RoundLog, before: tuple[Run, Published] | None = None) -> Published:
    """What a log tells; `before`: the publication before it, and its run."""
    slots, terms = log.slots, log.terms_at(int(log.rounds["round"][-1]))
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
        workers=terms.workers,
        worker_deaths=log.worker_deaths,
        build=terms.build,
    )
