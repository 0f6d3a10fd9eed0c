"""Losses for heavy tails, counts, quantiles and rare classes, labels that one of them does not take; optimizers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from looped import over

import streamtrain
from streamtrain.compute import losses, optimizers
from tests.fitting import example

ROWS = 20_000
TABLES: dict[str, Any] = {
    "columns": {"a": {"standardize": True}, "b": {"standardize": True}, "y": {"role": "label"}},
    "optimizer": {"name": "adam", "learning_rate": 0.01},
    "train": {"batch_rows": 64, "round_interval": "off"},
}


def inputs(seed: int = 0) -> tuple[np.random.Generator, np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    random = np.random.default_rng(seed)
    return random, random.normal(size=ROWS), random.normal(size=ROWS)


def fitted(loss: Any, y: Any, a: Any, b: Any, **label: Any) -> Any:
    tables = {**TABLES, "columns": {**TABLES["columns"], "y": {"role": "label", **label}}, "model": {"loss": loss}}
    return streamtrain.fit(tables, {"a": a, "b": b, "y": y})


def predicted(found: Any, a: Any, b: Any) -> np.ndarray[Any, Any]:
    return np.array([each["prediction"] for each in found.predict({"a": a, "b": b})], float)


def total(found: Any) -> dict[str, float]:
    figures: dict[str, float] = found.manifest.metrics["total"]
    assert all(np.isfinite(value).all() for value in figures.values()), figures
    return figures


def test_heavy_tails_pull_little() -> None:
    """Errors of a Cauchy distribution have no mean: what is learned is the line, which squares lose."""
    random, a, b = inputs()
    y = 3 * a - 2 * b + random.standard_cauchy(ROWS)
    off = {}
    for loss in ("mean_squared_error", "mean_absolute_error", "huber", "log_cosh"):
        found = fitted({"name": loss, "delta": 0.5} if loss == "huber" else loss, y, a, b)
        off[loss] = np.abs(predicted(found, a[:2000], b[:2000]) - (3 * a - 2 * b)[:2000]).mean()
        figures = total(found)
        assert loss == "mean_squared_error" or figures["loss"] < 0.9 * figures["constant_loss"], (loss, figures)
    assert off.pop("mean_squared_error") > 0.3 > max(off.values()), off


@pytest.mark.parametrize(
    ("at", "label"),
    [
        (0.1, {}), (0.9, {"standardize": True}),
        *(pytest.param(*each, marks=pytest.mark.full)
          for each in ((0.5, {}), (0.9, {}), (0.1, {"standardize": True}), (0.5, {"standardize": True}))),
    ],
)  # fmt: skip
def test_a_quantile_has_its_share_of_labels_below(at: float, label: dict[str, Any]) -> None:
    random, a, b = inputs()
    y = 10 + a + (0.5 + np.abs(b)) * random.normal(size=ROWS)
    found = fitted({"name": "quantile", "at": at}, y, a, b, **label)
    assert (y[-5000:] < predicted(found, a[-5000:], b[-5000:])).mean() == pytest.approx(at, abs=0.05)
    assert total(found)["loss"] < total(found)["constant_loss"]


def test_counts_have_a_rate() -> None:
    random, a, b = inputs()
    rate = np.exp(1 + 0.8 * a - 0.5 * b)
    found = fitted("poisson", random.poisson(rate), a, b)
    figures = total(found)
    assert figures["loss"] < figures["constant_loss"] and figures["mae"] < 0.8 * figures["constant_mae"], figures
    ratio = predicted(found, a[-2000:], b[-2000:]) / rate[-2000:]
    assert np.median(abs(np.log(ratio))) < 0.1


def rare() -> tuple[Any, Any, Any]:
    """3 % positive."""
    random, a, b = inputs()
    return (a + b + 0.5 * random.normal(size=ROWS) > 2.85).astype(int), a, b


def test_class_weights_find_a_rare_class_and_leave_figures_alone() -> None:
    """Weighted, the recall is higher; the constant prediction's figures are those of the rows as they are."""
    y, a, b = rare()
    plain = total(fitted("binary_cross_entropy", y, a, b))
    found = fitted({"name": "binary_cross_entropy", "class_weights": {"1": 30}}, y, a, b)
    weighted = total(found)
    assert weighted["recall"] > plain["recall"] + 0.1, (weighted, plain)
    same = ("constant_log_loss", "constant_accuracy", "rows", "weight")
    assert [weighted[name] for name in same] == [plain[name] for name in same]
    assert weighted["loss"] < 0.6 * weighted["constant_loss"], weighted
    assert weighted["log_loss"] > plain["log_loss"] and "loss" not in plain
    manifest = found.manifest
    assert manifest.model_spec["loss"] == {"name": "binary_cross_entropy", "class_weights": [1.0, 30.0],
                                           "label_smoothing": 0.0}  # fmt: skip
    assert manifest.job_settings["model"]["loss"]["class_weights"] == {"1": 30.0}


@pytest.mark.parametrize("loss", [{"name": "focal", "balance": 0.9}, "focal"])
def test_focal_losses_rank_a_rare_class(loss: Any) -> None:
    y, a, b = rare()
    figures = total(fitted(loss, y, a, b))
    assert figures["auc"] > 0.97 and figures["loss"] < 0.7 * figures["constant_loss"], figures


def test_a_hinge_parts_two_classes() -> None:
    random, a, b = inputs()
    found = fitted("hinge", (a + b + 0.3 * random.normal(size=ROWS) > 0).astype(int), a, b)
    figures = total(found)
    assert figures["accuracy"] > 0.9 and figures["loss"] < 0.3 * figures["constant_loss"], figures
    low, high = predicted(found, np.array([-2.0, 2.0]), np.array([-2.0, 2.0]))
    assert low < -1 and high > 1  # margins, not probabilities


def test_smoothed_labels_keep_probabilities_from_0_and_1() -> None:
    _, a, b = inputs()
    y = np.digitize(a + b, [-1, 1])
    smoothed = fitted({"name": "softmax_cross_entropy", "label_smoothing": 0.3}, y, a, b, classes=3)
    plain = fitted("softmax_cross_entropy", y, a, b, classes=3)
    less, sure = (
        np.mean([max(each["probabilities"].values()) for each in found.predict({"a": a[:500], "b": b[:500]})])
        for found in (smoothed, plain)
    )
    assert less < sure - 0.05, (less, sure)


def test_a_negative_count_is_a_dead_letter_with_its_reason(caplog: pytest.LogCaptureFixture) -> None:
    given = [{"a": 1.0, "b": 2.0, "y": y} for y in (1, 0, 2.5, -1, -1e-60, None, 1e300)]
    tables = {**TABLES, "model": {"loss": "poisson"}}
    manifest = streamtrain.fit(tables, given).manifest
    assert (manifest.rows_seen, manifest.counts.dead) == (3, 4)
    assert "row 3 at $.y: expected number not below 0, got -1" in caplog.text


@over("loss", [name for name in losses.names() if losses.label_kind(name) in ("number", "count")], sampled=True)
def test_labels_of_1e30_publish_nothing_that_is_not_finite(loss: str) -> None:
    _, a, b = inputs()
    y = np.abs(a)
    y[::50] = 1e30
    found = fitted(loss, y[:2000], a[:2000], b[:2000])
    assert total(found)["rows"] > 0
    assert all(np.isfinite(values).all() for values in found.parameters.values())


@over("name", optimizers.names(), sampled=True)
def test_every_optimizer_learns_at_its_usual_rate(name: str) -> None:
    metrics = streamtrain.fit({**example.TABLES, "optimizer": {"name": name}}, example.columns(20_000)).manifest.metrics
    assert metrics["total"]["log_loss"] < 0.6 * metrics["total"]["constant_log_loss"], metrics
    assert metrics["window"]["accuracy"] > 0.87, metrics
