"""The oracle of compute/ops/binary_objective.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops import Oracle
from tests.oracles.ops._batch import share, step, weights


def reference(
    rows: int, smoothing: float, z: Array, p: Array, plain: Array, label: Array, weight: Array, class_weight: Array,
    step: Any, dz: Array, loss: Array,
) -> None:
    counts, factor = weight > 0, class_weight[(label >= 0.5).astype(np.int64)].astype(np.float64)
    moved = smoothing * (label - 0.5)
    loss[:] = np.where(counts, factor * (plain + z.astype(np.float64) * moved), 0)
    dz[:] = np.where(counts, weight * share(step) * factor * (p - (label - moved)), 0)


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    weight = weights(rng, n)
    return {
        "rows": n, "smoothing": 0.1, "z": rng.normal(0, 3, n), "p": rng.random(n), "plain": rng.random(n),
        "label": rng.integers(0, 2, n), "weight": weight, "class_weight": [0.5, 3.0], "step": step(weight),
    }


ORACLES = {
    "binary_objective": Oracle(reference, example),
}
