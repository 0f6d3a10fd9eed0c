"""Training on rows a program holds: the same ring, rounds and workers as on Kafka, and no broker.

Source, ingest and publisher are threads of the caller; workers are processes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from os import PathLike
from pathlib import Path
from typing import Any

from streamtrain.clients.scorer import Errors, Scorer
from streamtrain.clients.snapshots import Snapshot, snapshot_of
from streamtrain.columns.served import Served
from streamtrain.errors import StreamtrainError, UserMistake
from streamtrain.files.records import FileRecords
from streamtrain.fitting.memory_run import MemoryRun
from streamtrain.job import Job
from streamtrain.kafka.chunks import Stored
from streamtrain.run.host import Event


@dataclass(frozen=True)
class Fitted(Snapshot):
    """The snapshot training has ended with. Any thread may call, several at the same time."""

    scorer: Scorer = field(repr=False, compare=False)

    def predict(self, rows: Any, errors: Errors = "raise") -> Any:
        """As LiveModel.predict."""
        return self.scorer.predict(rows, errors)


def fit(
    job: Job | str | Path | Mapping[str, Any],
    rows: Any = None,
    *,
    files: str | Path | Sequence[str | Path] | None = None,
    on_event: Callable[[Event], None] = lambda event: None,
) -> Fitted:
    """Trains a job's model on `rows`, once through, and gives the snapshot, which predicts; no Kafka is needed.

    `job` is a Job, a job file's path, or its tables ({"columns": {...}, "model": {...}, ...}); [kafka] and [topics]
    are not looked at, and rounds close only when they are full and at the end. `rows` are what RecordWriter takes: a
    dict of arrays, a frame, dicts, or an iterator of these, which is never held as a whole. The same rows through
    one partition of a topic give the same bits, where `train.round_interval` is "off".

    In their place `files` are read one behind the other, never as a whole, as `produce` and `vectorize` read them: to
    the bits that their rows give through a topic.

    `on_event` gets what a trainer tells: {"event": "progress" | "published" | "worker_died" | "ended", ...}, from
    other threads. Raises JobMistakes and UserMistake for a job or rows that are none, and where there are no rows;
    CheckFailed where training diverges, workers die again and again, or too many rows or all of them cannot be used;
    and what an iterator or `on_event` raises. However it ends, Ctrl-C included, it leaves no process and no memory.
    """
    wanted = _without_clock(_job(job))
    try:
        with MemoryRun(wanted, on_event) as run:
            stored = run.train(rows if files is None else FileRecords(wanted, _paths(rows, files)))
    except (StreamtrainError, KeyboardInterrupt) as error:
        raise error.with_traceback(None) from None  # whoever keeps the error keeps nothing of the run
    return _fitted(stored)


def _job(job: Job | str | Path | Mapping[str, Any]) -> Job:
    if isinstance(job, Job):
        return job
    if isinstance(job, Mapping):
        return Job.from_tables(job)
    if isinstance(job, str | PathLike):
        return Job.without_kafka(job)
    raise UserMistake(f"job: expected a Job, the path of a job file, or its tables, got {type(job).__name__}")


def _paths(rows: Any, files: str | Path | Sequence[str | Path]) -> list[str]:
    found = [files] if isinstance(files, str | PathLike) else list(files)
    if rows is not None or not found or not all(isinstance(path, str | PathLike) for path in found):
        got = "both" if rows is not None else "neither"
        raise UserMistake(f"fit: expected rows, or the paths of files, got {got}")
    return [str(path) for path in found]


def _without_clock(job: Job) -> Job:
    """Rounds close by rows alone, so that the bits do not depend on how fast a machine is."""
    effective = job.effective()
    return Job.from_effective({**effective, "train": {**effective["train"], "round_interval": "off"}})


def _fitted(stored: Stored) -> Fitted:
    snapshot = snapshot_of(stored)
    scorer = Scorer(Served.of(stored.manifest, stored.digest, stored.model))
    return Fitted(**{each.name: getattr(snapshot, each.name) for each in fields(snapshot)}, scorer=scorer)
