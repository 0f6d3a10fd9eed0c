"""The callback of `fit` that evaluates the model, keeps the best, and ends training where a condition is met."""

from __future__ import annotations

import math

from streamtrain.errors import CheckFailed
from streamtrain.fitting.callbacks import Moment
from streamtrain.fitting.early_stopping.early_stopping import EarlyStopping
from streamtrain.fitting.early_stopping.evaluation import Evaluation, best_of
from streamtrain.fitting.fitted import Fitted
from streamtrain.job import Job


class Judge:
    """Of one fit. Raises what the score does."""

    def __init__(self, stopping: EarlyStopping, job: Job) -> None:
        self._calculator, self._score, self._minimise = stopping.calculator(job)
        self._conditions = stopping.all_conditions()
        self._saver = stopping.saver()
        self.evaluations: list[Evaluation] = []
        self.reason, self.details = "", ""

    def on_round(self, moment: Moment) -> None:
        found = Evaluation(
            self._scored(moment), self._minimise, moment.version, moment.round, moment.epoch, moment.rows,
            moment.seconds,
        )  # fmt: skip
        self.evaluations.append(found)
        if best_of(self.evaluations) is found:
            self._saver.save(moment.model())
        for condition in self._conditions:
            if why := condition.met(self.evaluations):
                self.reason, self.details = condition.name, why
                moment.stop(f"{condition.name}: {why}")
                return

    def best(self) -> tuple[Evaluation, Fitted]:
        """The best evaluation and its model. CheckFailed where no score was finite."""
        best, model = best_of(self.evaluations), self._saver.best()
        if best is None or model is None:
            scores = ", ".join(f"{each.score}" for each in self.evaluations[:5])
            raise CheckFailed(
                f"early stopping: expected a score that is finite, got {scores or 'none'}; look at the score, or "
                "standardize large columns and lower optimizer.learning_rate"
            )
        return best, model

    def _scored(self, moment: Moment) -> float:
        if callable(self._score):
            return float(self._score(moment.model()))
        assert self._calculator is not None
        return self._calculator.figures(moment).get(self._score, math.nan)
