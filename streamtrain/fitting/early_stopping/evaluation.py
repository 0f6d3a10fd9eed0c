"""One look at a model's score, and which of two scores is better."""

from __future__ import annotations

import math
from dataclasses import dataclass

from streamtrain.compute.metrics import better, reaches


@dataclass(frozen=True)
class Evaluation:
    """The model's score after a round: its number, the passes over the rows that are done, the rows trained, the
    seconds since training began, and the version of the snapshot that was scored."""

    score: float
    minimise: bool
    version: int
    round: int
    epoch: int
    rows: int
    seconds: float

    @property
    def is_valid(self) -> bool:
        return math.isfinite(self.score)

    def better_than(self, score: float, least: float = 0.0) -> bool:
        """By more than `least`; false of a score that is not finite."""
        return better(self.score, score, self.minimise, least)

    def reaches(self, score: float) -> bool:
        return reaches(self.score, score, self.minimise)


def best_of(seen: list[Evaluation]) -> Evaluation | None:
    """The first of the best; None where no score is finite."""
    best: Evaluation | None = None
    for each in seen:
        if each.is_valid and (best is None or each.better_than(best.score)):
            best = each
    return best
