"""When training ends early, by what it is judged, and where the best model is kept."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from numbers import Real
from os import PathLike
from pathlib import Path
from typing import Any

from streamtrain.compute.early_stopping import Conditions, choose_score
from streamtrain.compute.model import Model
from streamtrain.errors import UserMistake
from streamtrain.fitting.early_stopping.calculators import Calculator, Progressive, Validation
from streamtrain.fitting.early_stopping.evaluation import Condition
from streamtrain.fitting.early_stopping.savers import InFolder, InMemory, Saver
from streamtrain.fitting.fitted import Fitted
from streamtrain.job import Job
from streamtrain.job.units import Duration

Score = str | Callable[[Fitted], float]
_LEAST_TIME_MS = 1


@dataclass(frozen=True, eq=False)
class EarlyStopping:
    """Training ends at the first evaluation at which one of these is so:

    no_improvement: stop after so many evaluations in a row without a better score by more than `least_improvement`.
    best_score: the score is that good. time: so long has passed ("10m"). rows, epochs: so many are trained, so many
    passes done. invalid_score: the score is not finite. conditions: further ones of your own, with `name` and
    met(evaluations), which gives why, or "".

    score: a figure of compute/metrics.py ("log_loss", "auc", "rmse", …), or a function of the model that gives one; if
    not given log_loss, of numbers rmse. held_out: over these rows or files; else over the rows trained since the
    evaluation before, each scored before it was learned. minimise: which is better; a figure knows by its name.

    every_epochs, every_rounds: an evaluation behind so many, and at the end; if neither is given, behind each pass.
    save_to: a folder for the best model, which `Fitted.load` reads; else it is held in memory.
    """

    no_improvement: int | None = None
    least_improvement: float = 0.0
    best_score: float | None = None
    time: str | None = None
    rows: int | None = None
    epochs: int | None = None
    invalid_score: bool = True
    conditions: Sequence[Condition] = ()
    score: Score | None = None
    held_out: Any = field(default=None, repr=False)
    minimise: bool | None = None
    every_epochs: int | None = None
    every_rounds: int | None = None
    save_to: str | Path | None = None

    def __post_init__(self) -> None:
        """UserMistake for settings that are none."""
        for name in ("no_improvement", "rows", "epochs", "every_epochs", "every_rounds"):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value < 1):
                raise UserMistake(f"EarlyStopping: {name}: expected a whole number from 1, got {value!r}")
        if not (isinstance(self.least_improvement, Real) and 0 <= self.least_improvement < float("inf")):
            raise UserMistake(
                f"EarlyStopping: least_improvement: expected a number from 0, got {self.least_improvement!r}"
            )
        best = self.best_score
        if best is not None and not (isinstance(best, Real) and math.isfinite(best)):
            raise UserMistake(f"EarlyStopping: best_score: expected a finite number, got {best!r}")
        if not isinstance(self.invalid_score, bool):
            raise UserMistake(f"EarlyStopping: invalid_score: expected True or False, got {self.invalid_score!r}")
        if not isinstance(self.minimise, bool | None):
            raise UserMistake(f"EarlyStopping: minimise: expected True, False or None, got {self.minimise!r}")
        if not isinstance(self.save_to, str | PathLike | None):
            raise UserMistake(f"EarlyStopping: save_to: expected a folder's path, got {self.save_to!r}")
        self._time_s()
        if callable(self.score) and self.held_out is not None:
            raise UserMistake("EarlyStopping: held_out: expected none beside a function that scores the model, got one")
        for each in self.conditions if isinstance(self.conditions, Sequence) else [self.conditions]:
            if not (hasattr(each, "met") and hasattr(each, "name")):
                raise UserMistake(
                    f"EarlyStopping: conditions: expected objects with name and met(), got {type(each).__name__}"
                )

    def judged(self, minimise: bool) -> Conditions:
        """Returns the built-in conditions. `minimise`: a lower score is better."""
        return Conditions(
            minimise, invalid_score=self.invalid_score, best_score=self.best_score, no_improvement=self.no_improvement,
            least_improvement=self.least_improvement, rows=self.rows, epochs=self.epochs, time_s=self._time_s(),
        )  # fmt: skip

    @property
    def ends_by_itself(self) -> bool:
        """Returns whether any condition but an invalid score can end training."""
        return bool(self.conditions) or self.judged(minimise=True).end_by_themselves

    def calculator(self, job: Job) -> tuple[Calculator | None, Score, bool]:
        """Returns what scores the model, the figure, and whether less of it is better. There is no calculator if
        `score` is a function. Raises UserMistake for a figure that the job's model does not have, and for an invalid
        validation set."""
        score = self.score
        if callable(score):
            return None, score, self.minimise is not False
        figures = Model(job.model_spec(), job.network).figures
        try:
            score, minimise = choose_score(figures, score, self.minimise)
        except ValueError as allowed:
            raise UserMistake(
                f"EarlyStopping: score: expected one of {', '.join(allowed.args)}, or a function of the model, "
                f"got {score!r}"
            ) from None
        return Progressive() if self.held_out is None else Validation(job, self.held_out), score, minimise

    def saver(self) -> Saver:
        return InMemory() if self.save_to is None else InFolder(Path(self.save_to))

    def _time_s(self) -> float | None:
        if self.time is None:
            return None
        takes = Duration(_LEAST_TIME_MS)
        try:
            return takes.parse(self.time)
        except ValueError:
            raise UserMistake(f"EarlyStopping: time: expected {takes.words}, got {self.time!r}") from None
