"""Figures from score blocks against scikit-learn on the same rows; the window of the progressive quality."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sklearn.metrics as sk
from looped import over

from streamtrain import _native
from streamtrain.compute import curves, losses, metrics
from streamtrain.compute.confusion import by_class, of_the_positive
from streamtrain.compute.metrics import auc, summary
from streamtrain.compute.moments import MOMENTS as NAMES
from streamtrain.compute.ops.score_binary import BINS, MOMENTS, place
from streamtrain.compute.quality import WINDOW_ROWS, Quality
from streamtrain.compute.state import block_view


def trained(rigged: Any, batches: int = 10, labels_below: int = 0) -> tuple[dict[str, Any], Any, Any, Any]:
    """Figures of batches that were predicted before their steps; and their predictions, labels and weights."""
    plan, seen = rigged.plan(), []
    for _ in range(batches):
        rigged.fill()
        if labels_below:
            rigged.blocks["label"][:200, 0] = rigged.rng.integers(0, labels_below, 200)
        plan.predict(rigged.address)
        counts = rigged.blocks["weight"][:, 0] > 0
        blocks = plan.output(), rigged.blocks["label"][:, 0], rigged.blocks["weight"][:, 0].astype(float)
        seen.append([block[counts].copy() for block in blocks])
        rigged.step(plan)
    return summary(rigged.model.scores(rigged.share)), *map(np.concatenate, zip(*seen, strict=True))


def constant(labels: Any, weights: Any, classes: int) -> tuple[float, float]:
    """Log loss and accuracy of the constant prediction, each row scored before it is counted."""
    seen, loss, right = np.zeros(classes), 0.0, 0.0
    for label, weight in zip(labels, weights, strict=True):
        loss -= weight * np.log((seen[label] + 0.5) / (seen.sum() + classes / 2))
        right += weight * (seen.argmax() == label)
        seen[label] += weight
    return loss / weights.sum(), right / weights.sum()


def test_binary(rig: Any, spec: Any) -> None:
    figures, p, y, w = trained(rig(spec(), rows=200, capacity=256))
    p = p[:, 0].astype(float)
    assert figures["weight"] == pytest.approx(w.sum())
    assert figures["log_loss"] == pytest.approx(sk.log_loss(y, p, sample_weight=w), rel=1e-5)
    assert figures["auc"] == pytest.approx(sk.roc_auc_score(y, p, sample_weight=w), abs=1e-3)
    assert figures["accuracy"] == pytest.approx(sk.accuracy_score(y, p >= 0.5, sample_weight=w), rel=1e-6)
    assert figures["average_precision"] == pytest.approx(sk.average_precision_score(y, p, sample_weight=w), abs=5e-3)
    for name, scored in (("precision", sk.precision_score), ("recall", sk.recall_score), ("f1", sk.f1_score)):
        assert figures[name] == pytest.approx(scored(y, p >= 0.5, sample_weight=w), rel=1e-6), name
    exact = sk.confusion_matrix(y, p >= 0.5, sample_weight=w)
    np.testing.assert_allclose(figures["confusion_matrix"], exact, rtol=1e-9)
    assert figures["calibration"] == pytest.approx((w * p).sum() / (w * y).sum(), rel=1e-4)
    part = np.minimum((p * 10).astype(int), 9)
    off = sum(abs((w * (p - y))[part == each].sum()) for each in range(10)) / w.sum()
    assert figures["calibration_error"] == pytest.approx(off, abs=2e-3)
    assert figures["normalized_entropy"] == pytest.approx(figures["log_loss"] / figures["constant_log_loss"])
    assert figures["rows"] == len(y) and isinstance(figures["rows"], int)
    expected = constant(y.astype(int), w, classes=2)
    assert figures["constant_log_loss"] == pytest.approx(expected[0], rel=1e-9)
    assert figures["constant_accuracy"] == pytest.approx(expected[1], rel=1e-9)


def test_regression(rig: Any, spec: Any) -> None:
    figures, p, y, w = trained(rig(spec("mean_squared_error"), rows=200, capacity=256))
    error = (p[:, 0] - y).astype(float)
    assert figures["mae"] == pytest.approx((w * abs(error)).sum() / w.sum(), rel=1e-5)
    assert figures["rmse"] == pytest.approx(np.sqrt((w * error**2).sum() / w.sum()), rel=1e-5)
    y = y.astype(float)
    assert figures["r2"] == pytest.approx(sk.r2_score(y, y + error, sample_weight=w), rel=1e-5)
    before = np.array([0, *np.cumsum(w * y)[:-1]]) / np.array([1, *np.cumsum(w)[:-1]])   # the mean of the rows before
    off = np.append(0, (before - y)[1:])   # the first of all has no prediction
    assert figures["constant_mae"] == pytest.approx((w * abs(off)).sum() / w.sum(), rel=1e-9)
    assert figures["constant_rmse"] == pytest.approx(np.sqrt((w * off**2).sum() / w.sum()), rel=1e-9)
    assert figures["rows"] == len(y)


def test_classes(rig: Any, spec: Any) -> None:
    figures, p, y, w = trained(rig(spec("softmax_cross_entropy"), rows=200, capacity=256))
    expected = sk.log_loss(y, p.astype(float), sample_weight=w, labels=[0, 1, 2])
    assert figures["log_loss"] == pytest.approx(expected, rel=1e-4)
    assert figures["accuracy"] == pytest.approx(sk.accuracy_score(y, p.argmax(1), sample_weight=w))
    expected = constant(y, w, classes=3)
    assert figures["constant_log_loss"] == pytest.approx(expected[0], rel=1e-9)
    assert figures["constant_accuracy"] == pytest.approx(expected[1], rel=1e-9)


@over("loss", losses.names())
@over("weighted", [False, True])
@over("rate", [0.5, 0.02])
def test_the_constant_prediction_does_not_depend_on_batches_or_rounds(
    rig: Any, spec: Any, loss: str, weighted: bool, rate: float
) -> None:
    """A row is scored before it is counted, after all rows before it: in its batch, its round and the rounds before."""
    kind, rng = losses.label_kind(loss), np.random.default_rng(2)
    labels = (rng.random(1024) < rate) + (rng.random(1024) < 0.1) * (kind != "binary")
    weights = rng.uniform(0.1, 3, 1024) if weighted else np.ones(1024)
    found = []
    for rows, batches_a_round in ((1024, 1), (256, 2), (8, 100), (1, 7)):
        rigged = rig(spec(loss=loss, standardize_label=False), rows=rows, capacity=rows)
        plan = rigged.plan()
        for at in range(0, 1024, rows):
            rigged.blocks["label"][:, 0], rigged.blocks["weight"][:, 0] = labels[at:][:rows], weights[at:][:rows]
            rigged.step(plan)
            if at // rows % batches_a_round == batches_a_round - 1:   # the sums of a round become the next one's base
                merge(rigged)
        merge(rigged)
        figures = summary(rigged.model.scores(rigged.base))
        found.append({name: value for name, value in figures.items() if name.startswith("constant_")})
        assert figures["rows"] == 1024
    for other in found[1:]:
        assert other == pytest.approx(found[0], rel=1e-11)
    if kind in ("binary", "class"):
        expected = constant(labels.astype(int), weights.astype(np.float32).astype(float), 2 + (kind == "class"))
        assert found[0]["constant_log_loss"] == pytest.approx(expected[0], rel=1e-11)
        assert found[0]["constant_accuracy"] == pytest.approx(expected[1], rel=1e-11)


def merge(rigged: Any) -> None:
    """The share of a round added to the base, as averaging does it."""
    for block in rigged.model.blocks:
        if block.rule == "sum":
            base, share = (block_view(block, part, block.part_offset) for part in (rigged.base, rigged.share))
            base += share
    rigged.share[:] = 0


SEED = 5


def logits(base_rate: float, spread: float, kind: str, rows: int, rng: Any) -> tuple[Any, Any]:
    """Logits of this spread around a base rate's, and labels: as the logits say, or by a sharper truth."""
    center = np.log(base_rate / (1 - base_rate))
    z = (center + spread * rng.standard_normal(rows)).astype(np.float32)
    truth = z if kind == "calibrated" else center + 1.5 * (z - center) / spread + rng.standard_normal(rows)
    return z, (rng.random(rows) < 1 / (1 + np.exp(-truth.astype(float)))).astype(np.float32)


BASE_RATES, SPREADS = (1e-5, 1e-4, 1e-2, 0.5, 1 - 1e-5), (0.05, 0.2, 1, 5)
CURVES = [  # in an order of which each sixth has every base rate, every spread and every kind
    (base_rate, spread, kind, weighted)
    for kind, weighted in (("calibrated", True), ("calibrated", False), ("sharper", True))
    for spread in SPREADS for base_rate in BASE_RATES
]  # fmt: skip


@over(("base_rate", "spread", "kind", "weighted"), CURVES, sampled=True)
def test_auc_is_that_of_scikit_learn_to_1e_3(base_rate: float, spread: float, kind: str, weighted: bool) -> None:
    """1024 bins of the probability gave 0.727 where it is 0.848 at a base rate of 1e-4."""
    rows, rng = 100_000 if 1e-3 < base_rate < 1 - 1e-3 else 400_000, np.random.default_rng(SEED)
    z, y = logits(base_rate, spread, kind, rows, rng)
    weight = rng.uniform(0.1, 4, rows).astype(np.float32) if weighted else np.ones(rows, np.float32)
    histogram, step = np.zeros((2, BINS, MOMENTS)), _native.StepBlock()
    step.active_rows = rows
    _native.call_kernel("score_binary", "", [
        rows, z, np.zeros(rows, np.float32), y, weight, np.zeros(2), step, np.zeros(4), np.zeros(2), np.zeros(2),
        np.zeros(1, np.int64), histogram,
    ])   # fmt: skip
    assert auc(histogram) == pytest.approx(sk.roc_auc_score(y, z, sample_weight=weight), abs=1e-3)


def test_auc_of_logits_that_are_huge_equal_or_alone() -> None:
    def of(z: list[float], y: list[int]) -> float:
        bins, x = place(np.array(z, np.float32))
        histogram = np.zeros((2, BINS, MOMENTS))
        for power in range(MOMENTS):
            np.add.at(histogram[..., power], (np.array(y), bins), x.astype(float) ** power)
        return auc(histogram)

    assert of([-50, 50, 1e30, -1e30, np.inf], [0, 1, 1, 0, 1]) == 1
    for z in (0.0, 3.0, -7.123, 11.99, -30.0):   # a model that has not learned yet gives every row the same
        assert of([z] * 7, [0, 1, 0, 1, 0, 0, 0]) == pytest.approx(0.5)
    assert of([1.001, 1.009], [0, 1]) > 0.6 and of([1.001, 1.009], [1, 0]) < 0.4   # in one bin
    assert of([-40, -20], [0, 1]) == 1 and of([1, 2], [1, 1]) == 0.5


def test_nothing_seen(rig: Any, spec: Any) -> None:
    rigged = rig(spec())
    assert summary(rigged.model.scores(rigged.share)) == {"rows": 0, "weight": 0.0}
    assert auc(np.zeros((2, BINS, MOMENTS))) == 0.5
    assert metrics.CONSTANT == "constant_"


@over(("base_rate", "spread"), [(0.5, 2.0), (0.01, 1.0), (0.001, 0.3), (0.2, 30.0)])
def test_curves_are_those_of_scikit_learn(base_rate: float, spread: float) -> None:
    rng = np.random.default_rng(3)
    z = (rng.normal(0, spread, 50_000) + np.log(base_rate / (1 - base_rate))).astype(np.float32)
    p = 1 / (1 + np.exp(-z.astype(np.float64)))
    y, w = (rng.random(len(z)) < p).astype(np.int64), rng.uniform(0.5, 2, len(z))
    histogram = np.zeros((2, BINS, MOMENTS))
    bins, x = place(z)
    for power in range(MOMENTS):
        np.add.at(histogram[..., power], (y, bins), w * x.astype(np.float64) ** power)
    exact = sk.average_precision_score(y, z, sample_weight=w)
    assert curves.average_precision(histogram[..., 0]) == pytest.approx(exact, rel=0.02, abs=1e-4)
    found = curves.calibration(histogram)
    assert found["calibration"] == pytest.approx((w * p).sum() / (w * y).sum(), rel=2e-3)
    assert found["calibration_error"] < 0.02


def test_curves_of_nothing_and_of_one_label() -> None:
    nothing = np.zeros((2, BINS, MOMENTS))
    none = of_the_positive(curves.at_half(nothing[..., 0]))
    assert none == {"precision": 0, "recall": 0, "f1": 0, "confusion_matrix": [[0, 0], [0, 0]]}
    assert curves.average_precision(nothing[..., 0]) == 0 and curves.calibration(nothing) == {"calibration_error": 0}
    positive = nothing.copy()
    positive[1, BINS - 1] = 1, 0.5, 0.25
    all_right = of_the_positive(curves.at_half(positive[..., 0]))
    assert all_right == {"precision": 1, "recall": 1, "f1": 1, "confusion_matrix": [[0, 0], [0, 1]]}
    assert curves.average_precision(positive[..., 0]) == 1 and curves.calibration(positive)["calibration"] == 1


@over("classes", [3, 7, 11, 120])
def test_top_classes_and_confusion_are_scikit_learns(rig: Any, spec: Any, classes: int) -> None:
    """Some of the model's classes are never a label; figures are those there are enough classes for."""
    rigged = rig(spec(loss="softmax_cross_entropy", classes=classes), rows=200, capacity=256)
    rigged.model.views(rigged.state)["output.weight"][:] = rigged.rng.normal(0, 0.5, (5, classes))
    figures, p, y, w = trained(rigged, 4, classes - 1)
    every, told = list(range(classes)), p.argmax(1)
    for most in (5, 10, 100):
        name = f"top_{most}_accuracy"
        assert (name in figures) == (classes > most) == (name in rigged.model.figures)
        if classes > most:
            exact = sk.top_k_accuracy_score(y, p, k=most, sample_weight=w, labels=every)
            assert figures[name] == pytest.approx(exact, rel=1e-9) and 0 < exact < 1
    assert ("confusion_matrix" in figures) == ("macro_f1" in figures) == (classes <= 64)
    assert "confusion_matrix" not in rigged.model.figures
    if classes > 64:
        return
    matrix = figures["confusion_matrix"]
    np.testing.assert_allclose(matrix, sk.confusion_matrix(y, told, sample_weight=w, labels=every), rtol=1e-9)
    for name, scored in (("precision", sk.precision_score), ("recall", sk.recall_score), ("f1", sk.f1_score)):
        exact = scored(y, told, sample_weight=w, average="macro", zero_division=0)
        assert figures[f"macro_{name}"] == pytest.approx(exact, rel=1e-9)
        exact = scored(y, told, sample_weight=w, average=None, labels=every, zero_division=0)
        assert [each[name] for each in by_class(matrix)] == pytest.approx(exact, rel=1e-9)
    assert sum(each["weight"] for each in by_class(matrix)) == pytest.approx(w.sum())
    assert np.trace(matrix) / w.sum() == pytest.approx(figures["accuracy"])


def test_confusion_of_a_window_is_that_of_its_rows(rig: Any, spec: Any) -> None:
    """The difference of two looks, as all that is gathered."""
    rigged = rig(spec(loss="softmax_cross_entropy", classes=6), rows=200, capacity=256)
    plan = rigged.train(1)
    before = {name: block.copy() for name, block in rigged.model.scores(rigged.share).items()}
    rigged.step(plan)
    window = {name: block - before[name] for name, block in rigged.model.scores(rigged.share).items()}
    figures = summary(window)
    assert np.sum(figures["confusion_matrix"]) == pytest.approx(figures["weight"])
    assert np.trace(figures["confusion_matrix"]) == pytest.approx(figures["accuracy"] * figures["weight"])
    assert figures["accuracy"] <= figures["top_5_accuracy"] <= 1


def state(rows: int) -> dict[str, Any]:
    """A regression's scores after so many rows."""
    return {"score.loss": np.array([3.0 * rows, 3.0 * rows, rows, 0.0]), "score.errors": np.full(5, float(rows)),
            "score.rows": np.array([rows]),   # each of weight 3: a window counts rows
            "optimizer.steps": np.array([rows // 8])}


def test_the_first_window_grows_and_a_full_one_stays_until_the_next_is_full() -> None:
    quality = Quality()
    quality.begin(state(0))
    assert quality.look(state(2_000))["window"]["rows"] == 2_000
    assert quality.look(state(6_000))["window"]["rows"] == 6_000
    full = quality.look(state(WINDOW_ROWS + 500))
    assert full["window"]["rows"] == WINDOW_ROWS + 500
    assert quality.look(state(WINDOW_ROWS + 900))["window"] == full["window"]
    later = quality.look(state(2 * WINDOW_ROWS + 900))
    assert later["window"]["rows"] == WINDOW_ROWS + 400 and later["total"]["rows"] == 2 * WINDOW_ROWS + 900


def test_updates_and_the_columns_most_clipped_are_told() -> None:
    moments = np.zeros((3, len(NAMES)))
    moments[:, NAMES.index("clipped")] = [2, 0, 7]
    quality = Quality(["a", "b", "c"])
    quality.begin(state(0))
    seen = quality.look({**state(800), "standardize.numbers": moments})
    assert seen["updates"] == 100 and seen["clipped"] == {"c": 7, "a": 2} and list(seen["clipped"]) == ["c", "a"]
