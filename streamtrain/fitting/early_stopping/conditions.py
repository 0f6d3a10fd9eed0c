"""When training is to end: each condition looks at all evaluations so far, and at nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from streamtrain.fitting.early_stopping.evaluation import Evaluation


class Condition(Protocol):
    @property
    def name(self) -> str:
        """What a result calls it."""

    def met(self, seen: Sequence[Evaluation]) -> str:
        """Why training ends with the last of these; "" where it goes on."""


@dataclass(frozen=True)
class NoImprovement:
    """So many evaluations in a row were not better than the best before them by more than `least`."""

    evaluations: int
    least: float = 0.0
    name: str = "no_improvement"

    def met(self, seen: Sequence[Evaluation]) -> str:
        best, since = None, 0
        for each in seen:
            if best is None or not best.is_valid or each.better_than(best.score, self.least):
                best, since = each, 0
            else:
                since += 1
        if best is None or since < self.evaluations:
            return ""
        by = f" by more than {self.least:g}" if self.least else ""
        return f"{since} evaluations were not better{by} than {best.score:g} of snapshot {best.version}"


@dataclass(frozen=True)
class BestScore:
    """The score is that good."""

    score: float
    name: str = "best_score"

    def met(self, seen: Sequence[Evaluation]) -> str:
        return f"{seen[-1].score:g} reaches {self.score:g}" if seen[-1].reaches(self.score) else ""


@dataclass(frozen=True)
class Time:
    """Training has gone on for so long: the one condition that looks at a clock."""

    seconds: float
    name: str = "time"

    def met(self, seen: Sequence[Evaluation]) -> str:
        passed = seen[-1].seconds
        return f"{passed:.1f} s have passed of {self.seconds:g} s" if passed >= self.seconds else ""


@dataclass(frozen=True)
class Rows:
    """So many rows are trained."""

    rows: int
    name: str = "rows"

    def met(self, seen: Sequence[Evaluation]) -> str:
        return f"{seen[-1].rows:,} rows are trained of {self.rows:,}" if seen[-1].rows >= self.rows else ""


@dataclass(frozen=True)
class Epochs:
    """So many passes over the rows are done."""

    epochs: int
    name: str = "epochs"

    def met(self, seen: Sequence[Evaluation]) -> str:
        return f"{seen[-1].epoch} passes over the rows are done" if seen[-1].epoch >= self.epochs else ""


@dataclass(frozen=True)
class InvalidScore:
    """The score is not finite."""

    name: str = "invalid_score"

    def met(self, seen: Sequence[Evaluation]) -> str:
        return "" if seen[-1].is_valid else f"the score is {seen[-1].score}"
