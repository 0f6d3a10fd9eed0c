"""Figures from score blocks against scikit-learn on the same rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from streamtrain.compute import metrics
from streamtrain.compute.metrics import auc, summary


def trained(rig: Any, spec: Any, loss: str, **shape: Any) -> tuple[Any, list[Any], list[Any], list[Any]]:
    """Scores of ten batches, each predicted before its step; and the predictions, labels and weights themselves."""
    rigged = rig(spec(loss=loss, **shape), rows=200, capacity=256)
    plan = rigged.plan()
    seen: tuple[list[Any], list[Any], list[Any]] = ([], [], [])
    for _ in range(10):
        rigged.fill()
        plan.predict(rigged.address)
        counts = rigged.blocks["weight"][:, 0] > 0
        for kept, block in zip(seen, (plan.output(), rigged.blocks["label"], rigged.blocks["weight"]), strict=True):
            kept.append(block[counts].copy())
        rigged.step(plan)
    return rigged, *(np.concatenate(kept) for kept in seen)   # type: ignore[return-value]


def test_binary(rig: Any, spec: Any) -> None:
    sk = pytest.importorskip("sklearn.metrics")
    rigged, p, y, w = trained(rig, spec, "binary_cross_entropy")
    figures = summary(rigged.model.scores(rigged.share))
    p, y, w = p[:, 0].astype(float), y[:, 0], w[:, 0].astype(float)
    assert figures["weight"] == pytest.approx(w.sum())
    assert figures["log_loss"] == pytest.approx(sk.log_loss(y, p, sample_weight=w), rel=1e-5)
    assert figures["auc"] == pytest.approx(sk.roc_auc_score(y, p), abs=2e-3)
    assert figures["accuracy"] == pytest.approx(((p >= 0.5) == y).mean())
    assert figures["constant_log_loss"] == pytest.approx(np.log(2))   # the base has seen nothing
    assert figures["constant_accuracy"] == pytest.approx(max(y.mean(), 1 - y.mean()))


def test_regression(rig: Any, spec: Any) -> None:
    rigged, p, y, w = trained(rig, spec, "mean_squared_error")
    figures = summary(rigged.model.scores(rigged.share))
    error, w = (p - y)[:, 0].astype(float), w[:, 0].astype(float)
    assert figures["mae"] == pytest.approx((w * abs(error)).sum() / w.sum(), rel=1e-5)
    assert figures["rmse"] == pytest.approx(np.sqrt((w * error**2).sum() / w.sum()), rel=1e-5)
    assert figures["constant_mae"] == pytest.approx((w * abs(y[:, 0])).sum() / w.sum(), rel=1e-5)


def test_classes(rig: Any, spec: Any) -> None:
    sk = pytest.importorskip("sklearn.metrics")
    rigged, p, y, w = trained(rig, spec, "softmax_cross_entropy")
    figures = summary(rigged.model.scores(rigged.share))
    expected = sk.log_loss(y[:, 0], p.astype(float), sample_weight=w[:, 0].astype(float), labels=[0, 1, 2])
    assert figures["log_loss"] == pytest.approx(expected, rel=1e-4)
    assert figures["accuracy"] == pytest.approx((p.argmax(1) == y[:, 0]).mean())
    assert figures["constant_log_loss"] == pytest.approx(np.log(3))


def test_the_constant_prediction_is_the_label_mean_of_the_base(rig: Any, spec: Any) -> None:
    rigged = rig(spec(), rows=200, capacity=256)
    plan = rigged.plan()
    rigged.step(plan)
    rigged.base[:], rigged.share[:] = rigged.share, 0
    rigged.step(plan)
    figures = summary(rigged.model.scores(rigged.share))
    y, w = rigged.blocks["label"][:, 0], rigged.blocks["weight"][:, 0].astype(float)
    mean = (w * y).sum() / w.sum()
    entropy = -(mean * np.log(mean) + (1 - mean) * np.log(1 - mean))
    assert figures["constant_log_loss"] == pytest.approx(entropy, rel=1e-6)


def test_nothing_seen(rig: Any, spec: Any) -> None:
    rigged = rig(spec())
    assert summary(rigged.model.scores(rigged.share)) == {"weight": 0.0}
    assert auc(np.zeros((2, 1024), np.int64)) == 0.5
    assert metrics.CONSTANT == "constant_"
