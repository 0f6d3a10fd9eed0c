"""The state of a stream's early stopping, publication by publication, from manifests' metrics alone."""

from __future__ import annotations

import math
from typing import Any

import pytest
from looped import over

from streamtrain.job.early_stop import EarlyStop
from streamtrain.job.sections import EarlyStopping

FIGURES = ["log_loss", "auc", "calibration"]
DAY_MS = 86_400_000


def stop(**settings: Any) -> EarlyStop:
    return EarlyStop(EarlyStopping(**settings), FIGURES)


def window(log_loss: float, auc: float = 0.5, rows: int = 10_000) -> dict[str, Any]:
    """A publication with such a window, which is growing below 10,000 rows."""
    found = {"rows": rows, "log_loss": log_loss, "auc": auc}
    return {"window": found, "windows": [found] if rows >= 10_000 else []}


def folded(given: list[dict[str, Any]], **settings: Any) -> list[dict[str, Any]]:
    """Each by another run, as after a kill."""
    before: dict[str, Any] = {}
    found = []
    for version, metrics in enumerate(given, 2):
        found.append(stop(**settings).after(before, metrics, version, 1000 * version, version * DAY_MS))
        before = {**metrics, "early_stopping": found[-1]}
    return found


def test_evaluations_are_windows_that_close() -> None:
    growing = [window(0.9, rows=500), window(0.8, rows=9_999), window(0.7), {"windows": []}, window(0.6)]
    found = folded(growing, no_improvement=2)
    assert [each["evaluations"] for each in found] == [0, 0, 1, 1, 2]
    assert [each.get("best_version") for each in found] == [None, None, 4, 4, 6]
    assert "score" not in found[1] and found[4]["score"] == 0.6
    several = {"windows": [each for score in (0.5, 0.3, 0.4) for each in window(score)["windows"]]}
    (state,) = folded([several], no_improvement=2)
    assert (state["evaluations"], state["since"], state["best_score"], state["reason"]) == (3, 1, 0.3, "")
    worse = {"windows": [*several["windows"], *window(0.31)["windows"], *window(0.1)["windows"]]}
    (state,) = folded([worse], no_improvement=2)  # over before the last, which is better
    assert (state["evaluations"], state["best_score"], state["reason"]) == (4, 0.3, "no_improvement")


@over(
    ("settings", "scores", "at"),
    [
        ({"no_improvement": 2}, [0.5, 0.4, 0.45, 0.41, 0.3], 3),
        ({"no_improvement": 2}, [0.5, 0.4, 0.45, 0.39, 0.395], None),
        ({"no_improvement": 2, "least_improvement": 0.1}, [0.5, 0.45, 0.41, 0.3], 2),
        ({"no_improvement": 2, "least_improvement": 0.1}, [0.5, 0.45, 0.39, 0.3, 0.28], None),
        ({"no_improvement": 2}, [math.nan, 0.5, 0.6, 0.4, 0.5, 0.6], 5),
        ({"no_improvement": 2}, [math.nan, math.inf, 0.4], 1),
        ({"best_score": 0.4}, [0.5, 0.41, 0.4], 2),
        ({"rows": 4000}, [0.5, 0.5, 0.5, 0.5], 2),
        ({"invalid_score": True, "rows": 9**9}, [0.5, math.nan, 0.5], 1),
        ({"invalid_score": True, "rows": 9**9}, [0.5, None, 0.5], 1),
        ({"time": "2d"}, [0.5, 0.5, 0.5, 0.5], 2),
    ],
)
def test_when_it_ends(settings: dict[str, Any], scores: list[float | None], at: int | None) -> None:
    windows = [window(score) if score is not None else {"windows": [{"rows": 10_000}]} for score in scores]
    found = folded(windows, **settings)
    reasons = [each["reason"] for each in found]
    name = next(name for name in settings if name != "least_improvement")
    assert next((number for number, reason in enumerate(reasons) if reason), None) == at
    assert at is None or reasons[at] == name


def test_a_figure_knows_which_is_better_and_another_is_reported() -> None:
    rising = [window(0.5, auc) for auc in (0.6, 0.7, 0.65, 0.66)]
    assert [each["since"] for each in folded(rising, score="auc", no_improvement=2)] == [0, 0, 1, 2]
    assert [each["since"] for each in folded(rising, score="auc", minimise=True, no_improvement=9)] == [0, 1, 2, 3]
    with pytest.raises(ValueError):
        stop(rows=1, score="calibration")
    stop(rows=1, score="calibration", minimise=True)


def test_other_settings_begin_anew() -> None:
    one, other = stop(no_improvement=1), stop(no_improvement=2)
    metrics = window(0.5)
    metrics = {**metrics, "early_stopping": one.after({}, metrics, 2, 1, 1)}
    worse = {**window(0.6), "early_stopping": one.after(metrics, window(0.6), 3, 2, 2)}
    assert one.why(metrics) == "" and other.why(worse) == ""
    assert one.why(worse) == (
        "early stopping, no_improvement: 1 evaluations were not better than 0.5 of snapshot 2; the best is snapshot 2, "
        "log_loss 0.5"
    )
    state = other.after(worse, window(0.7), 4, 3, 3)
    assert (state["evaluations"], state["since"], state["begun_ms"], state["best_version"]) == (1, 0, 3, 4)


def test_passes_are_counted_over_starts() -> None:
    early, before = stop(epochs=2), window(0.5)
    for version, (passes, expected) in enumerate([(0, (0, "")), (1, (1, "")), (0, (1, "")), (1, (2, "epochs"))], 2):
        state = early.after(before, window(0.5), version, 100, 1, passes)
        before = {**window(0.5), "early_stopping": state}
        assert (state["epochs"], state["reason"]) == expected
    assert before["early_stopping"]["details"] == "2 passes over the rows are done"


def test_a_validation_set_scores_in_place_of_windows_and_another_set_begins_anew() -> None:
    validation_set = {"identity": "files:a", "rows": 3}
    early = EarlyStop(EarlyStopping(no_improvement=1), FIGURES, validation_set)
    metrics = {**window(0.9), "held_out": {"log_loss": 0.4}}
    state = early.after({}, metrics, 2, 1, 1)
    assert state["score"] == 0.4 and state["held_out"] == validation_set
    before = {**metrics, "early_stopping": state}
    assert early.after(before, {"windows": []}, 3, 2, 2)["evaluations"] == 1, "no window has closed"
    ended = {**window(0.9), "held_out": {"log_loss": 0.5}}
    assert early.is_due({"windows": []}, 1) and early.after(before, ended, 3, 2, 2, 1)["since"] == 1
    assert EarlyStop(EarlyStopping(no_improvement=1), FIGURES, {**validation_set, "rows": 4}).stopping(before) is None
