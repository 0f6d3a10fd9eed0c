"""When a stream's training ends by itself: judged at publications, of windows of rows that are scored before they are
learned. Where it stands is in the manifests' metrics and nowhere else, so that a run goes on as the one before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamtrain.compute.early_stopping import Standing
from streamtrain.compute.quality import closed
from streamtrain.job.sections import EarlyStopping

Metrics = Mapping[str, Any]
NAME = "early_stopping"  # among a manifest's metrics


class EarlyStop:
    """Of one job's settings; `figures` are those its model is judged by."""

    def __init__(self, settings: EarlyStopping, figures: list[str]) -> None:
        self._score, minimise = settings.figure(figures)
        self._conditions = settings.conditions(minimise)
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
        """Where it stands with a publication of those `metrics`, behind one whose metrics were `before`: the settings,
        when it began, a Standing, and which condition is met, "" where training goes on."""
        found = self.standing(before) or {}
        standing, begun_ms = Standing.from_dict(found), found.get("begun_ms", created_ms)
        window = metrics["window"]
        if closed(window, before.get("window")) and self._score in window:
            standing = self._conditions.after(standing, window[self._score], version)
        reason, details = self._conditions.met(standing, rows, (created_ms - begun_ms) / 1000)
        of_it = {"settings": self._told, "begun_ms": begun_ms, "reason": reason, "details": details}
        return {**of_it, **standing.to_dict()}


def found_text(standing: Metrics) -> str:
    """Why it has ended, and which snapshot is the best."""
    best = ""
    if "best_version" in standing:
        score = standing["settings"]["score"]
        best = f"; the best is snapshot {standing['best_version']}, {score} {standing['best_score']:.6g}"
    return f"early stopping, {standing['reason']}: {standing['details']}{best}"
