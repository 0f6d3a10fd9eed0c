"""When a stream's training ends by itself: judged at publications, by each window of rows that has closed, scored
before they were learned, or by rows held out. Where it stands is in the manifests' metrics and nowhere else, so that a
run goes on as the one before it, and who verifies a job can count again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from streamtrain.compute.early_stopping import NAME, StoppingState
from streamtrain.compute.quality import HELD_OUT
from streamtrain.job.sections import EarlyStopping

Metrics = Mapping[str, Any]


class EarlyStop:
    """The early stopping that a job's settings ask for. `figures` names the figures of its model. `held_out`
    describes the validation set, None without one."""

    def __init__(
        self, settings: EarlyStopping, figures: list[str], validation: Mapping[str, Any] | None = None
    ) -> None:
        self._score, minimise = settings.figure(figures)
        self._conditions = settings.conditions(minimise)
        self._settings = {**settings.model_dump(mode="json", by_alias=True, exclude_none=True), "score": self._score}
        self._validation = None if validation is None else dict(validation)
        self._invalid = settings.invalid_score

    def stopping(self, metrics: Metrics) -> Metrics | None:
        """Returns the status that a manifest's metrics hold under these settings; None where they hold none."""
        found: Metrics | None = metrics.get(NAME)
        same = found is not None and (found.get("settings"), found.get(HELD_OUT)) == (self._settings, self._validation)
        return found if same else None

    def is_due(self, metrics: Metrics, passes: int) -> bool:
        """Returns True if a publication is an evaluation: a window has closed, or it ends a pass over held out rows."""
        return bool(metrics["windows"]) or (self._validation is not None and passes > 0)

    def why(self, metrics: Metrics) -> str:
        """Why training has ended with that manifest; "" where it goes on."""
        found = self.stopping(metrics)
        return "" if found is None or not found["reason"] else found_text(found)

    def after(
        self, before: Metrics, metrics: Metrics, version: int, rows: int, created_ms: int, passes: int = 0
    ) -> dict[str, Any]:
        """Returns the status after a publication of those `metrics`, which ends so many passes. `before` are the
        metrics of the publication before it. The status has the settings, when it began, the passes, a Standing, and
        which condition is met, "" where training goes on."""
        found = self.stopping(before) or {}
        stopping, begun_ms = StoppingState.from_dict(found), found.get("begun_ms", created_ms)
        epochs = found.get("epochs", 0) + passes
        evaluations = metrics["windows"] if self._validation is None else [metrics.get(HELD_OUT, {})]
        for figures in evaluations if self.is_due(metrics, passes) else ():
            if self._score in figures or self._invalid:  # what has no value is left out, as r2 of equal labels
                stopping = self._conditions.after(stopping, _score(figures.get(self._score)), version)
            if self._conditions.met(stopping, rows=0, seconds=0)[0]:
                break  # by the scores so far: what comes later in the same publication changes nothing
        reason, details = self._conditions.met(stopping, rows, (created_ms - begun_ms) / 1000, epochs)
        own = {"settings": self._settings, "begun_ms": begun_ms, "epochs": epochs, "reason": reason, "details": details}
        validation = {} if self._validation is None else {HELD_OUT: self._validation}
        return {**own, **validation, **stopping.to_dict()}


def _score(figure: float | None) -> float:
    """Manifests hold nothing for a number that is not finite."""
    return math.nan if figure is None or not math.isfinite(figure) else figure


def found_text(stopping: Metrics) -> str:
    """Why it has ended, and which snapshot is the best."""
    return f"early stopping, {stopping['reason']}: {stopping['details']}{_best(stopping)}"


def stopping_text(stopping: Metrics) -> str:
    """Returns how far the evaluations are, and why they ended if they did."""
    if stopping["reason"]:
        return found_text(stopping).removeprefix("early stopping, ")
    count, since = stopping["evaluations"], stopping["since"]
    last = f", {stopping['settings']['score']} {stopping['score']:.6g}" if "score" in stopping else ""
    none_better = f", {since} without improvement" if since else ""
    return f"{count:,} evaluation{'' if count == 1 else 's'}{last}{none_better}{_best(stopping)}"


def _best(stopping: Metrics) -> str:
    if "best_version" not in stopping:
        return ""
    score = stopping["settings"]["score"]
    return f"; the best is snapshot {stopping['best_version']}, {score} {stopping['best_score']:.6g}"
