"""The oracle of compute/ops/score_classes.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops import Oracle
from tests.oracles.ops._batch import step, weights
from tests.oracles.ops._constant import score_constant


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


ORACLES = {
    "score_classes": Oracle(reference, example, 1e-12),
}
