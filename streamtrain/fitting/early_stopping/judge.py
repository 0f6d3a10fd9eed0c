"""The callback of `fit` that evaluates the model, keeps the best, and ends training where a condition is met."""

from __future__ import annotations

import math

from streamtrain.compute.early_stopping import StoppingState
from streamtrain.errors import CheckFailed
from streamtrain.fitting.callbacks import Moment
from streamtrain.fitting.early_stopping.configuration import EarlyStopping
from streamtrain.fitting.early_stopping.evaluation import Evaluation
from streamtrain.fitting.fitted import Fitted
from streamtrain.job import Job


class Judge:
    """The early stopping of one fit. Raises what the score raises."""

    def __init__(self, stopping: EarlyStopping, job: Job) -> None:
        self._calculator, self._score, self._minimise = stopping.calculator(job)
        self._conditions, self._own = stopping.judged(self._minimise), stopping.conditions
        self._stopping = StoppingState()
        self._saver = stopping.saver()
        self.evaluations: list[Evaluation] = []
        self.reason, self.details = "", ""

    def on_round(self, moment: Moment) -> None:
        found = Evaluation(
            self._scored(moment), self._minimise, moment.version, moment.round, moment.epoch, moment.rows,
            moment.seconds,
        )  # fmt: skip
        self.evaluations.append(found)
        self._stopping = self._conditions.after(self._stopping, found.score, found.version)
        if self._stopping.best_version == found.version:
            self._saver.save(moment.model())
        name, why = self._met(found)
        if name:
            self.reason, self.details = name, why
            moment.stop(f"{name}: {why}")

    def best(self) -> tuple[Evaluation, Fitted]:
        """The best evaluation and its model. CheckFailed where no score was finite."""
        best = next((each for each in self.evaluations if each.version == self._stopping.best_version), None)
        model = self._saver.best()
        if best is None or model is None:
            scores = ", ".join(f"{each.score}" for each in self.evaluations[:5])
            raise CheckFailed(
                f"early stopping: expected a score that is finite, got {scores or 'none'}; look at the score, or "
                "standardize large columns and lower optimizer.learning_rate"
            )
        return best, model

    def _met(self, now: Evaluation) -> tuple[str, str]:
        """(condition, why): ours first, for a score that is none is none to others."""
        met = self._conditions.met(self._stopping, now.rows, now.seconds, now.epoch)
        own = ((each.name, each.met(self.evaluations)) for each in self._own)
        return met if met[0] else next((each for each in own if each[1]), ("", ""))

    def _scored(self, moment: Moment) -> float:
        if callable(self._score):
            return float(self._score(moment.model()))
        assert self._calculator is not None
        return self._calculator.figures(moment).get(self._score, math.nan)
