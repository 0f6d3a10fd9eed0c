"""When a stream's training ends by itself: judged at publications, of windows of rows that are scored before they are
learned. Where it stands is in the manifests' metrics and nowhere else, so that a run goes on as the one before it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from streamtrain.compute.metrics import better, reaches
from streamtrain.compute.quality import WINDOW_ROWS
from streamtrain.job.sections import EarlyStopping

Metrics = Mapping[str, Any]
NAME = "early_stopping"  # among a manifest's metrics


class EarlyStop:
    """Of one job's settings; `figures` are those its model is judged by."""

    def __init__(self, settings: EarlyStopping, figures: list[str]) -> None:
        self._settings = settings
        self._score, self._minimise = settings.figure(figures)
        self._told = {**settings.model_dump(mode="json", by_alias=True, exclude_none=True), "score": self._score}

    def standing(self, metrics: Metrics) -> Metrics | None:
        """What a manifest's metrics say of it under these settings; None where they say nothing."""
        found: Metrics | None = metrics.get(NAME)
        return None if found is None or found.get("settings") != self._told else found

    def why(self, metrics: Metrics) -> str:
        """Why training has ended with that manifest; "" where it goes on."""
        found = self.standing(metrics)
        return "" if found is None or not found["reason"] else found_text(found)

    def after(self, before: Metrics, metrics: Metrics, version: int, rows: int, created_ms: int) -> dict[str, Any]:
        """Where it stands with a publication of those `metrics`, behind one whose metrics were `before`.

        score and best_score: of the newest and of the best evaluation; mark: the score that others must be better than,
        and since: how many in a row were not.
        """
        standing = self.standing(before)
        now = dict(standing) if standing is not None else {
            "settings": self._told, "begun_ms": created_ms, "evaluations": 0, "since": 0, "reason": "", "details": ""
        }  # fmt: skip
        window = metrics["window"]
        if window["rows"] >= WINDOW_ROWS and window != before.get("window") and self._score in window:
            self._evaluate(now, window[self._score], version)
        now["reason"], now["details"] = self._met(now, rows, created_ms)
        return now

    def _evaluate(self, now: dict[str, Any], score: float, version: int) -> None:
        now["evaluations"] += 1
        now["score"] = score
        worst = math.inf if self._minimise else -math.inf
        if better(score, now.get("best_score", worst), self._minimise):
            now["best_score"], now["best_version"] = score, version
        if better(score, now.get("mark", worst), self._minimise, self._settings.least_improvement):
            now["mark"], now["since"] = score, 0
        else:
            now["since"] += 1

    def _met(self, now: Metrics, rows: int, created_ms: int) -> tuple[str, str]:
        """(condition, its figures), both "" where training goes on."""
        settings = self._settings
        wanted, score = settings.best_score, now.get("score")
        if wanted is not None and score is not None and reaches(score, wanted, self._minimise):
            return "best_score", f"{self._score} {score:.6g} reaches {wanted:g}"
        if settings.no_improvement is not None and now["since"] >= settings.no_improvement:
            by = f" by more than {settings.least_improvement:g}" if settings.least_improvement else ""
            than = f"better{by} than {now['mark']:.6g}" if "mark" in now else "finite"
            return "no_improvement", f"{now['since']} evaluations were not {than}"
        if settings.rows is not None and rows >= settings.rows:
            return "rows", f"{rows:,} rows are trained of {settings.rows:,}"
        passed_s = (created_ms - now["begun_ms"]) / 1000
        if settings.time_s is not None and passed_s >= settings.time_s:
            return "time", f"{passed_s:.1f} s have passed of {settings.time_s:g} s"
        return "", ""


def found_text(standing: Metrics) -> str:
    """Why it has ended, and which snapshot is the best."""
    best = ""
    if "best_version" in standing:
        score = standing["settings"]["score"]
        best = f"; the best is snapshot {standing['best_version']}, {score} {standing['best_score']:.6g}"
    return f"early stopping, {standing['reason']}: {standing['details']}{best}"
