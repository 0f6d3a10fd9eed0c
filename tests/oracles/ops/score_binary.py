"""The oracle of compute/ops/score_binary.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.ops.score_binary import _BEYOND, _EVEN, _OF_ONE, _REACH, BINS, MOMENTS
from streamtrain.compute.spec import Array
from tests.oracles.ops import Oracle
from tests.oracles.ops._batch import step, weights
from tests.oracles.ops._constant import score_constant


def place(z: Array) -> tuple[Array, Array]:
    """Bin of each logit, and the place in it. In float32, as the kernel has it."""
    reach, even, beyond, of_one = (np.float32(each) for each in (_REACH, _EVEN, _BEYOND, _OF_ONE))
    with np.errstate(all="ignore"):
        away = abs(z.astype(np.float32))
        folded = np.where(away <= even, away, reach - beyond * beyond / (away - (even - beyond)))
        at = np.nan_to_num(np.maximum((np.copysign(folded, z).astype(np.float32) + reach) * of_one, 0))
    bins = np.minimum(at, BINS - 1).astype(np.int64)
    return bins, np.minimum(at - bins.astype(np.float32), np.float32(1))


def reference(
    rows: int, z: Array, loss: Array, label: Array, weight: Array, base_classes: Array, step: Any, share_loss: Array,
    share_classes: Array, hits: Array, count: Array, histogram: Array,
) -> None:
    counts = weight > 0
    w, y, q = weight[counts].astype(np.float64), (label[counts] >= 0.5).astype(np.int64), z[counts]
    total = float((w * loss[counts]).sum())
    constant_loss, constant_right = score_constant(base_classes, share_classes, y, w)
    share_loss += [total, w.sum(), constant_loss, 0]
    hits += [(w * ((q >= 0) == y)).sum(), constant_right]
    count += step.active_rows
    bins, x = place(q)
    for power in range(MOMENTS):
        np.add.at(histogram[..., power], (y, bins), w * x.astype(np.float64) ** power)
    step.loss_sum = step.objective_sum = total
    step.not_finite |= int(not np.isfinite(total))


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    weight = weights(rng, n)
    if n % 2:   # rows of weight 1 under a class that leads are scored together
        weight = np.ceil(weight).clip(0, 1)
    return {
        "rows": n, "z": rng.normal(0, 8, n), "loss": rng.random(n), "label": rng.integers(0, 2, n), "weight": weight,
        "base_classes": [20.0 + 1000 * (n % 3 == 1), 7.0], "step": step(weight), "share_loss": [1.0, 2.0, 3.0, 4.0],
        "share_classes": [3.0, 2.0], "hits": [5.0, 6.0], "count": [7], "histogram": np.zeros((2, BINS, MOMENTS)),
    }


ORACLES = {
    "score_binary": Oracle(reference, example, 1e-12),
}
