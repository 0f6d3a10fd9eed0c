"""The oracle of compute/ops/class_objective.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops import Oracle
from tests.oracles.ops._batch import share, step, weights


def reference(
    rows: int, classes: int, smoothing: float, z: Array, p: Array, plain: Array, label: Array, weight: Array,
    class_weight: Array, step: Any, dz: Array, loss: Array,
) -> None:
    counts, every, score = weight > 0, np.arange(rows), z.astype(np.float64)
    index = np.where((label >= 0) & (label < classes), label, 0)
    factor = class_weight[index].astype(np.float64)
    target = np.full((rows, classes), smoothing / classes)
    target[every, index] += 1 - smoothing
    loss[:] = np.where(counts, factor * (plain + smoothing * (score[every, index] - score.mean(1))), 0)
    dz[:] = np.where(counts[:, None], (weight * share(step) * factor)[:, None] * (p - target), 0)


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    classes, weight = 2 + n % 70, weights(rng, n)
    return {
        "rows": n, "classes": classes, "smoothing": 0.1, "z": rng.normal(0, 3, (n, classes)),
        "p": rng.random((n, classes)), "plain": rng.random(n), "label": rng.integers(-1, classes + 1, n),
        "weight": weight, "class_weight": rng.uniform(0.5, 3, classes), "step": step(weight),
    }


ORACLES = {
    "class_objective": Oracle(reference, example),
}
