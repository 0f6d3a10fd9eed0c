"""Training on rows a program holds: the same ring, rounds and workers as on Kafka, and no broker.

Source, ingest and publisher are threads of the caller; workers are processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from streamtrain.clients.snapshot_arrays import Snapshot
from streamtrain.columns.forms import collected
from streamtrain.columns.rejected import MAX_REJECTED, RejectedRows, Rejecting
from streamtrain.errors import StreamtrainError, UserMistake
from streamtrain.files.file_records import FileRecords
from streamtrain.fitting.callbacks import Callbacks
from streamtrain.fitting.fit_progress import show_progress
from streamtrain.fitting.fit_start import Start
from streamtrain.fitting.fitted import Fitted
from streamtrain.fitting.given_labels import check_labels
from streamtrain.fitting.memory_run import MemoryRun
from streamtrain.fitting.watching import Watching
from streamtrain.job import Job
from streamtrain.run.host import Event
from streamtrain.topics.chunks import Stored


def fit(
    job: Job | str | Path | Mapping[str, Any],
    rows: Any = None,
    *,
    files: str | Path | Sequence[str | Path] | None = None,
    module: Any = None,
    start: Fitted | Snapshot | str | Path | None = None,
    epochs: int = 1,
    callbacks: Sequence[Any] = (),
    every_rounds: int | None = None,
    every_epochs: int | None = None,
    progress: bool = False,
    on_event: Callable[[Event], None] = lambda event: None,
    max_rejected: float = MAX_REJECTED,
) -> Fitted:
    """Trains a job's model on `rows` and gives the snapshot, which predicts; no Kafka is needed.

    `job` is a Job, a job file's path, or its tables ({"columns": {...}, "model": {...}, ...}); [kafka] and [topics]
    are not looked at, and rounds close only when they are full and at the end. `rows` are what RecordWriter takes: a
    dict of arrays, a frame, dicts, or an iterator of these, which is never held as a whole. The same rows through
    one partition of a topic give the same bits, where `train.round_interval` is "off".

    `files`, in place of `rows`, are read one after the other, never as a whole, to the bits that a topic of their rows
    gives. `epochs`: passes over the rows (an iterator: one); each ends a round and goes on from the one before.
    `module`: a torch.nn.Module, or what makes one, as the network; the job's model has no layers then. What it holds is
    where training starts, and is left as it was. `start`: a Fitted of the same columns, model and optimizer, or the
    path of one that is saved: training goes on where it ended. A Snapshot of follow_snapshots has no optimizer's state.
    `callbacks` (see Moment) are called after each publication, or with `every_rounds` or `every_epochs` behind exactly
    so many, and at the end, while training waits: the same moments in every run. They change no bit. `progress`: a bar,
    where standard error is a terminal. `on_event` gets what a trainer tells: {"event": "progress" | "published" |
    "worker_died" | "ended", ...}. It and callbacks are called from other threads.

    A row with a cell that its column cannot take (infinity, a list, an object) is left out; `Fitted.rejected` has its
    place and reason. Where such rows are more than `max_rejected`, a share from 0 to 1 of all rows, that is a mistake.

    Raises JobMistakes and UserMistake for a job or rows that are none, and where there are no rows; CheckFailed where
    training diverges, workers die again and again, or too many rows or all of them cannot be used; and what an
    iterator, a callback or `on_event` raises. However it ends, Ctrl-C included, it leaves no process and no memory.
    """
    given, rows, rejecting = job_of(job, module), collected(rows), Rejecting(max_rejected)
    _check_passes(rows, epochs, every_rounds, every_epochs)
    check_labels(given, rows)
    training_job = _without_clock(given)
    source = rows if files is None else FileRecords(training_job, _paths(rows, files), rejecting=rejecting)
    begin = Start.of(start, training_job)
    watching = Watching(Callbacks(callbacks), given.network, every_rounds, every_epochs)
    watching.begin(given)
    with show_progress(progress, rows, epochs, on_event) as heard:
        trained = _trained(MemoryRun(training_job, heard, watching, rejecting, epochs, begin), source)
    return watching.end(*trained)


def _trained(run: MemoryRun, source: Any) -> tuple[Stored, str, RejectedRows]:
    """The snapshot that a run ends with, why it was stopped, and the rows that could not be used."""
    try:
        with run:
            return *run.train(source), run.rejected
    except (StreamtrainError, KeyboardInterrupt) as error:
        raise error.with_traceback(None) from None  # whoever keeps the error keeps nothing of the run


def _check_passes(rows: Any, epochs: int, every_rounds: int | None, every_epochs: int | None) -> None:
    for name, count in {"epochs": epochs, "every_rounds": every_rounds, "every_epochs": every_epochs}.items():
        if count is not None and (type(count) is not int or count < 1):
            raise UserMistake(f"fit: {name}: expected a whole number from 1, got {count!r}")
    if epochs > 1 and isinstance(rows, Iterator):
        raise UserMistake(
            f"fit: epochs: expected 1 for an iterator, which gives its rows once, got {epochs}; give arrays, a frame, "
            "a list or files"
        )


def job_of(job: Job | str | Path | Mapping[str, Any], module: Any) -> Job:
    if isinstance(job, Job):
        if module is not None:
            raise UserMistake("fit: expected a module with a job file or its tables, got a Job, which has its own")
        return job
    if isinstance(job, Mapping):
        return Job.from_tables(job, module)
    if isinstance(job, str | PathLike):
        return Job.without_kafka(job, module)
    raise UserMistake(f"job: expected a Job, the path of a job file, or its tables, got {type(job).__name__}")


def _paths(rows: Any, files: str | Path | Sequence[str | Path]) -> list[str]:
    found = list(files) if isinstance(files, Iterable) and not isinstance(files, str) else [files]
    for path in found:
        if not isinstance(path, str | PathLike):
            raise UserMistake(f"fit: files: expected the paths of files, got {type(path).__name__}")
    if rows is not None or not found:
        got = "both" if rows is not None else "neither"
        raise UserMistake(f"fit: expected rows, or the paths of files, got {got}")
    return [str(path) for path in found]


def _without_clock(job: Job) -> Job:
    """Rounds close by rows alone, so that the bits do not depend on how fast a machine is; a stream's early stopping,
    which looks at publications, is left out."""
    effective = job.effective()
    train = {name: value for name, value in effective["train"].items() if name != "early_stopping"}
    settings = {**effective, "train": {**train, "round_interval": "off"}}
    return Job.from_effective(settings, network=job.network)
