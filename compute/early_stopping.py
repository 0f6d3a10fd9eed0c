"""When training ends by itself: what its evaluations have come to, and the conditions that are judged by it.

Of streams and of `fit` alike; knows neither, and where the counts are kept is theirs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from streamtrain.compute.metrics import better, is_lower_better, ranked, reaches, usual

NAME = "early_stopping"  # of a Standing among the metrics of a stream's publication


def best_version(metrics: Mapping[str, Any]) -> int | None:
    """The version of the best publication, as one with those metrics has it; None where none was judged."""
    found: int | None = metrics.get(NAME, {}).get("best_version")
    return found


def choose_score(figures: Sequence[str], score: str | None, minimise: bool | None) -> tuple[str, bool]:
    """The score's name, the usual one where None is given, and whether less of it is better, where a model is judged by
    those figures. ValueError, whose arguments are what is allowed, where there is no such."""
    allowed = ranked(figures) if minimise is None else figures
    name = usual(allowed) if score is None else score
    if name not in allowed:
        raise ValueError(*allowed)
    return name, is_lower_better(name) if minimise is None else minimise


@dataclass(frozen=True)
class StoppingState:
    """The status after evaluations in their order. `score` is the newest, `best_score` the best, and `mark` the
    score that others must beat. `since` counts the evaluations in a row that did not. Scores are None if none was
    finite."""

    evaluations: int = 0
    since: int = 0
    score: float | None = None
    best_score: float | None = None
    best_version: int | None = None
    mark: float | None = None
    mark_version: int | None = None

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> StoppingState:
        return cls(**{each.name: values[each.name] for each in fields(cls) if each.name in values})

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields that are set and finite. Other names beside them are left to whoever stores the dict."""
        return {name: value for name, value in asdict(self).items() if value is not None and math.isfinite(value)}


@dataclass(frozen=True)
class Conditions:
    """Training ends at the first of these that is met; None is never. Their order is that in which they are looked at,
    and their names are what settings and results call them."""

    minimise: bool
    invalid_score: bool = False  # ends it
    best_score: float | None = None
    no_improvement: int | None = None
    least_improvement: float = 0.0
    rows: int | None = None
    epochs: int | None = None
    time_s: float | None = None

    @property
    def end_by_themselves(self) -> bool:
        """Returns whether any condition but an invalid score can end training."""
        limits = (self.best_score, self.no_improvement, self.rows, self.epochs, self.time_s)
        return any(each is not None for each in limits)

    def after(self, stopping: StoppingState, score: float, version: int) -> StoppingState:
        """With one evaluation more: of the snapshot of that version."""
        now = replace(stopping, evaluations=stopping.evaluations + 1, since=stopping.since + 1, score=score)
        worst = math.inf if self.minimise else -math.inf
        if better(score, worst if now.best_score is None else now.best_score, self.minimise):
            now = replace(now, best_score=score, best_version=version)
        if better(score, worst if now.mark is None else now.mark, self.minimise, self.least_improvement):
            now = replace(now, since=0, mark=score, mark_version=version)
        return now

    def met(self, stopping: StoppingState, rows: int, seconds: float, epochs: int = 0) -> tuple[str, str]:
        """(name, its figures) of the first that is met, with so many rows trained, seconds gone by and passes over the
        rows done; ("", "") where training goes on."""
        found = {
            "invalid_score": self._invalid_score(stopping),
            "best_score": self._best_score(stopping),
            "no_improvement": self._no_improvement(stopping),
            "rows": _reached(rows, self.rows, f"{rows:,} rows are trained of {self.rows or 0:,}"),
            "epochs": _reached(epochs, self.epochs, f"{epochs} passes over the rows are done"),
            "time": _reached(seconds, self.time_s, f"{seconds:.1f} s have passed of {self.time_s or 0:g} s"),
        }
        return next(((name, why) for name, why in found.items() if why), ("", ""))

    def _invalid_score(self, stopping: StoppingState) -> str:
        score = stopping.score
        wrong = self.invalid_score and score is not None and not math.isfinite(score)
        return f"the score is {score}" if wrong else ""

    def _best_score(self, stopping: StoppingState) -> str:
        score, target = stopping.score, self.best_score
        if score is None or target is None or not reaches(score, target, self.minimise):
            return ""
        return f"{score:.6g} reaches {target:g}"

    def _no_improvement(self, stopping: StoppingState) -> str:
        if self.no_improvement is None or stopping.since < self.no_improvement:
            return ""
        by = f" by more than {self.least_improvement:g}" if self.least_improvement else ""
        mark = stopping.mark
        than = "finite" if mark is None else f"better{by} than {mark:.6g} of snapshot {stopping.mark_version}"
        return f"{stopping.since} evaluations were not {than}"


def _reached(now: float, limit: float | None, why: str) -> str:
    return why if limit is not None and now >= limit else ""
