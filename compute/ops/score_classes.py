"""Scores of a model over classes on a batch before its update."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.ops._batch import step, weights
from streamtrain.compute.ops._constant import score_constant
from streamtrain.compute.spec import Array, Op, changed, given, size, step_changed

HELP = "log loss and hits of a model over classes"


def reference(
    rows: int, classes: int, rank: Array, loss: Array, label: Array, weight: Array, base_classes: Array, step: Any,
    share_loss: Array, share_classes: Array, hits: Array, count: Array,
) -> None:
    counts = weight > 0
    index = np.where((label >= 0) & (label < classes), label, 0)[counts]
    w = weight[counts].astype(np.float64)
    total = float((w * loss[counts]).sum())
    constant_loss, constant_right = score_constant(base_classes, share_classes, index, w)
    share_loss += [total, w.sum(), constant_loss, 0]
    hits += [(w * (rank[counts] == 0)).sum(), constant_right]
    count += step.active_rows
    step.loss_sum = step.objective_sum = total
    step.not_finite |= int(not np.isfinite(total))


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    classes, weight = 2 + n % 9, weights(rng, n)
    return {
        "rows": n, "classes": classes, "rank": rng.integers(0, 2, n), "loss": rng.random(n),
        "label": rng.integers(-1, classes + 1, n), "weight": weight, "base_classes": rng.integers(0, 9, classes),
        "step": step(weight), "share_loss": [1.0, 2.0, 3.0, 4.0], "share_classes": np.ones(classes), "hits": [5.0, 6.0],
        "count": [7],
    }


OPS = (
    Op(
        "score_classes",
        (size("rows"), size("classes"), given("rank", "i32", "rows"), given("loss", "f32", "rows"),
         given("label", "i32", "rows"), given("weight", "f32", "rows"), given("base_classes", "f64", "classes"),
         step_changed(), changed("share_loss", "f64", 4), changed("share_classes", "f64", "classes"),
         changed("hits", "f64", 2), changed("count", "i64", 1)),
        reference, example, tolerance=1e-12,
    ),
)
