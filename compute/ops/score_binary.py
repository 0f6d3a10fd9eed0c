"""Scores of a binary model on a batch before its update."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.ops._batch import step, weights
from streamtrain.compute.spec import Array, Op, changed, given, size, step_changed

HELP = "log loss, histogram of predictions and hits of a binary model"
BINS = 1024


def reference(
    rows: int, p: Array, loss: Array, label: Array, weight: Array, base_loss: Array, step: Any, share_loss: Array,
    histogram: Array, hits: Array,
) -> None:
    counts = weight > 0
    w, y, q = weight[counts].astype(np.float64), label[counts], p[counts]
    mean = float(np.clip(base_loss[3] / base_loss[1] if base_loss[1] > 0 else 0.5, 1e-6, 1 - 1e-6))
    total, ones = float((w * loss[counts]).sum()), float((w * y).sum())
    share_loss += [total, w.sum(), -(ones * np.log(mean) + (w.sum() - ones) * np.log(1 - mean)), ones]
    bins = np.nan_to_num(np.clip(q * BINS, 0, BINS - 1)).astype(np.int64)
    np.add.at(histogram.reshape(2, BINS), ((y >= 0.5).astype(np.int64), bins), 1)
    hits += [((q >= 0.5) == (y >= 0.5)).sum(), counts.sum()]
    step.loss_sum = total
    step.not_finite |= int(not np.isfinite(total))


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    weight = weights(rng, n)
    return {
        "rows": n, "p": rng.random(n), "loss": rng.random(n), "label": rng.integers(0, 2, n), "weight": weight,
        "base_loss": [50.0, 100.0, 60.0, 30.0], "step": step(weight), "share_loss": [1.0, 2.0, 3.0, 4.0],
        "histogram": np.zeros((2, BINS)), "hits": [5, 6],
    }


ROWS = ("f32", "rows")
OPS = (
    Op(
        "score_binary",
        (size("rows"), given("p", *ROWS), given("loss", *ROWS), given("label", *ROWS), given("weight", *ROWS),
         given("base_loss", "f64", 4), step_changed(), changed("share_loss", "f64", 4),
         changed("histogram", "i64", 2, BINS), changed("hits", "i64", 2)),
        reference, example, tolerance=1e-12,
    ),
)
