"""Training that ends when it no longer improves, by the names of Deeplearning4j's trainers
(org.deeplearning4j.earlystopping.trainer): thin faces of `fit` and of ParallelWrapper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from streamtrain.errors import UserMistake
from streamtrain.fitting.early_stopping.configuration import EarlyStopping
from streamtrain.fitting.early_stopping.evaluation import Evaluation
from streamtrain.fitting.early_stopping.judge import Judge
from streamtrain.fitting.fit import fit, job_of
from streamtrain.fitting.fit_history import History
from streamtrain.fitting.fitted import Fitted
from streamtrain.fitting.parallel_wrapper import ParallelWrapper, given_as
from streamtrain.job import Job
from streamtrain.run.host import Event

END_OF_ROWS = "end_of_rows"
_MANY = 1_000_000_000  # passes: a condition ends them


@dataclass(frozen=True)
class EarlyStopped:
    """The end of training. `reason` is the condition's name ("no_improvement", …), or "end_of_rows"; `details` its
    figures. `best_model` predicts; `best_score`, `best_version`, `best_epoch` are its. `model` is the last one."""

    reason: str
    details: str
    best_score: float
    best_version: int
    best_epoch: int
    best_model: Fitted = field(repr=False)
    model: Fitted = field(repr=False)
    evaluations: tuple[Evaluation, ...] = field(repr=False)

    @property
    def history(self) -> History:
        return self.model.history

    @property
    def scores(self) -> dict[int, float]:
        """By the version of the snapshot, in order."""
        return {each.version: each.score for each in self.evaluations}


class EarlyStoppingTrainer:
    """Trains a job's model on `source` (rows as `fit` takes them, or the path of a file or several) until a condition
    is met. Rows that can be gone over again are, as often as it takes, but at most EarlyStopping.epochs times.

    Raises JobMistakes and UserMistake for what is none, before anything runs.
    """

    def __init__(
        self,
        early_stopping: EarlyStopping,
        job: Job | str | Path | Mapping[str, Any],
        source: Any,
        *,
        module: Any = None,
    ) -> None:
        self._begin(early_stopping, job_of(job, module), source)

    def _begin(self, early_stopping: EarlyStopping, job: Job, source: Any) -> None:
        if not isinstance(early_stopping, EarlyStopping):
            raise UserMistake(f"early_stopping: expected an EarlyStopping, got {type(early_stopping).__name__}")
        once = isinstance(source, Iterator)
        if not once and not early_stopping.ends_by_itself:
            raise UserMistake(
                "EarlyStopping: expected a condition that ends training: no_improvement, best_score, time, rows, "
                "epochs or one of your own, got none"
            )
        self._stopping, self._job, self._given = early_stopping, job, given_as(source)
        self._epochs = early_stopping.epochs or (1 if once else _MANY)

    def fit(
        self,
        *,
        callbacks: Sequence[Any] = (),
        progress: bool = True,
        on_event: Callable[[Event], None] = lambda event: None,
    ) -> EarlyStopped:
        """Trains; raises as `fit`, and CheckFailed where no score was finite."""
        stopping, judge = self._stopping, Judge(self._stopping, self._job)
        each = 1 if stopping.every_epochs is None and stopping.every_rounds is None else stopping.every_epochs
        model = fit(
            self._job,
            **self._given,
            epochs=self._epochs,
            callbacks=[judge, *callbacks],
            every_rounds=stopping.every_rounds,
            every_epochs=each,
            progress=progress,
            on_event=on_event,
        )
        best, best_model = judge.best()
        reason = judge.reason or (END_OF_ROWS if not model.stopped else "callback")
        details = judge.details or model.stopped or f"{model.manifest.rows_seen:,} rows are trained"
        return EarlyStopped(
            reason, details, best.score, best.version, best.epoch, best_model, model, tuple(judge.evaluations)
        )


class EarlyStoppingParallelTrainer(EarlyStoppingTrainer):
    """The same with the settings of a ParallelWrapper: workers=4, averaging_frequency=1, …"""

    def __init__(
        self,
        early_stopping: EarlyStopping,
        job: Job | str | Path | Mapping[str, Any],
        source: Any,
        workers: int = 4,
        **settings: Any,
    ) -> None:
        self._begin(early_stopping, ParallelWrapper(job, workers, **settings).job, source)
