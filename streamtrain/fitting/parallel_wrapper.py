"""`fit` by the names of Deeplearning4j's ParallelWrapper (org.deeplearning4j.parallelism): a thin face of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from streamtrain.columns.rejected import MAX_REJECTED
from streamtrain.compute.torch import TorchModule
from streamtrain.errors import UserMistake
from streamtrain.fitting.fit import fit, job_of
from streamtrain.fitting.fit_progress import show_progress
from streamtrain.fitting.fitted import Fitted
from streamtrain.fitting.kafka_run import train_to_end
from streamtrain.job import Job
from streamtrain.job.mistakes import JobMistakes
from streamtrain.run.host import Event


class ParallelWrapper:
    """A job's model, to be trained by several workers whose parameters are averaged every so many batches.

    `job` as for `fit`, `module` too; or a Fitted, whose job is taken, and which training goes on from. These settings
    stand in the place of the job's own:

    workers: processes (train.workers). prefetch_buffer: batches in the ring (train.prefetch_buffer); if not given 24,
    or three rounds where that is more. averaging_frequency: batches per worker between two averagings
    (train.averaging_frequency). report_score_after_averaging: the averaged parameters are scored too, in
    metrics["after_averaging"]. average_updater: the optimizer's state is averaged as parameters are, else each worker
    keeps its own (train.average_optimizer_state). averaging: what the workers' parameters become (train.averaging):
    "mean", by the rows' weights, or another by its name; or a table of a name and settings. threads_per_worker and
    affinity: threads on each batch of a worker and its cores (train.threads_per_worker, train.affinity); if not given,
    the job's own.

    Raises JobMistakes and UserMistake for settings and jobs that are none.
    """

    def __init__(
        self,
        job: Job | str | Path | Mapping[str, Any] | Fitted,
        workers: int = 4,
        prefetch_buffer: int | None = None,
        averaging_frequency: int = 1,
        report_score_after_averaging: bool = True,
        average_updater: bool = True,
        averaging: str | Mapping[str, Any] = "mean",
        *,
        threads_per_worker: int | None = None,
        affinity: str | None = None,
        module: Any = None,
    ) -> None:
        self._settings = {
            "workers": workers,
            "prefetch_buffer": prefetch_buffer,
            "averaging_frequency": averaging_frequency,
            "report_score_after_averaging": report_score_after_averaging,
            "average_optimizer_state": average_updater,
            "threads_per_worker": threads_per_worker,
            "affinity": affinity,
            "averaging": averaging if isinstance(averaging, Mapping) else {"name": averaging},
        }
        self._start = job if isinstance(job, Fitted) else None
        found = job_of(job, module) if not isinstance(job, Fitted) else _job_of_fitted(job, module)
        self.job = _with_train(found, self._settings)

    def fit(
        self,
        source: Any,
        *,
        epochs: int = 1,
        callbacks: Sequence[Any] = (),
        every_rounds: int | None = None,
        every_epochs: int | None = None,
        progress: bool = True,
        on_event: Callable[[Event], None] = lambda event: None,
        max_rejected: float = MAX_REJECTED,
    ) -> Fitted:
        """Trains on `source`: rows as `fit` takes them, or the path of a file or several. All else as for `fit`.

        Or a Job with a [kafka]: it is trained in the place of the wrapper's own, from where its newest snapshot ends to
        where its records end now, and published, as `streamtrain train --until-end` does; once, without callbacks.

        The wrapper of a Fitted trains rows as fit(start=fitted) does. A Job with a [kafka] then begins with that model,
        in a new lineage at records.start; one that has a snapshot goes on with it if it came from that model, and is a
        UserMistake otherwise.
        """
        if isinstance(source, Job):
            _check_stream(source, epochs, callbacks, every_rounds, every_epochs)
            with show_progress(progress, None, 1, on_event) as heard:
                return train_to_end(_with_train(source, self._settings), heard, self._start)
        return fit(
            self.job,
            **given_as(source),
            start=self._start,
            epochs=epochs,
            callbacks=callbacks,
            every_rounds=every_rounds,
            every_epochs=every_epochs,
            progress=progress,
            on_event=on_event,
            max_rejected=max_rejected,
        )


def _job_of_fitted(fitted: Fitted, module: Any) -> Job:
    """The job that a model was trained with; it has no [kafka]."""
    network = fitted.network if module is None else TorchModule.of(module)
    return Job.from_effective(fitted.manifest.job_settings, network=network)


def given_as(source: Any) -> dict[str, Any]:
    """Returns the arguments of `fit` for a source: files, or rows. Raises UserMistake for a job, whose rows lie on
    Kafka."""
    if isinstance(source, Job):
        raise UserMistake(
            "expected rows, or the paths of files, got a Job; on the records that its topic holds ParallelWrapper.fit "
            "and `streamtrain train` train it, and [train.early_stopping] ends that"
        )
    paths = source if isinstance(source, list | tuple) else [source]
    is_files = bool(paths) and all(isinstance(path, str | PathLike) for path in paths)
    return {"files": list(paths)} if is_files else {"rows": source}


def _check_stream(job: Job, epochs: int, callbacks: Any, every_rounds: int | None, every_epochs: int | None) -> None:
    if not job.kafka.bootstrap:
        raise UserMistake(f"{job.name}: expected a Job with a [kafka], got one without; load it with Job.load")
    if epochs != 1 or callbacks or every_rounds is not None or every_epochs is not None:
        raise UserMistake(
            "ParallelWrapper.fit: expected epochs=1 and no callbacks for records on Kafka, which are trained once; "
            "follow_snapshots gives each snapshot as it is published"
        )


def _with_train(job: Job, settings: Mapping[str, Any]) -> Job:
    effective = job.effective()
    given = {name: value for name, value in settings.items() if value is not None}
    train = {name: value for name, value in effective["train"].items() if name != "prefetch_buffer"}
    try:
        new_job = Job.from_effective({**effective, "train": {**train, **given}}, job.kafka, job.network)
        return replace(new_job, registry=job.registry)
    except JobMistakes as error:
        raise JobMistakes("ParallelWrapper", [replace(each, where="settings") for each in error.mistakes]) from None
