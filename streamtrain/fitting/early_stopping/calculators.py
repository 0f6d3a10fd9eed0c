"""Calculators of a model's score. They score the rows learned since the last evaluation, each before it was learned, or
a validation set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from streamtrain.compute.metrics import summary
from streamtrain.compute.spec import Array
from streamtrain.fitting.cached_rows import cache_rows
from streamtrain.fitting.callbacks import Moment
from streamtrain.job import Job

Figures = Mapping[str, float]


class Calculator(Protocol):
    def figures(self, moment: Moment) -> Figures:
        """By name (compute/metrics.py). Asked once a moment, in order."""


class Progressive:
    """Over the rows trained since the last evaluation."""

    def __init__(self) -> None:
        self._before: dict[str, Array] = {}

    def figures(self, moment: Moment) -> Figures:
        scores = moment.scores()
        window = {name: array - self._before.get(name, np.zeros_like(array)) for name, array in scores.items()}
        self._before = {name: array.copy() for name, array in scores.items()}
        return summary(window)


class Validation:
    """Over rows that are never trained. They are decoded once, and held as slots.

    UserMistake, naming it, for a row that cannot be used, and where there is none.
    """

    def __init__(self, job: Job, source: Any) -> None:
        self._rows = cache_rows(job, source, "held_out")

    def figures(self, moment: Moment) -> Figures:
        return self._rows.judge(moment.model().scorer.served.evaluator(self._rows.layout))
