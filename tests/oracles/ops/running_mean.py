"""The oracle of compute/ops/running_mean.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops import Oracle
from tests.oracles.ops._batch import sums_before, weights


def before(label: Array, weight: Array, base: Array, share: Array) -> tuple[Array, Array]:
    """Weight and weighted label, each [rows], of the rows before each."""
    counts = weight > 0
    w, wy = (np.where(counts, added, 0).astype(np.float64) for added in (weight, weight.astype(np.float64) * label))
    return base[1] + share[1] + sums_before(w), base[3] + share[3] + sums_before(wy)


def mean_before(
    rows: int, label: Array, weight: Array, base: Array, share: Array, mean: Array, scale: Array, constant: Array,
    z: Array,
) -> None:
    seen, labels = before(label, weight, base, share)
    constant[:] = np.where(seen > 0, labels / np.where(seen > 0, seen, 1), label)
    z[:] = (constant - mean[0]) * scale[0]


def rate_before(
    rows: int, label: Array, weight: Array, base: Array, share: Array, constant: Array, z: Array
) -> None:
    seen, labels = before(label, weight, base, share)
    constant[:] = (labels + 0.5) / (seen + 0.5)
    z[:] = np.log((labels + 0.5) / (seen + 0.5))


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {
        "rows": n, "label": rng.poisson(9, n), "weight": weights(rng, n), "base": [1.0, 100.0 * (n % 2), 1.0, 300.0],
        "share": [1.0, 20.0 * (n % 2), 3.0, 70.0], "mean": [3.0], "scale": [0.5],
    }


ORACLES = {
    "running_mean": Oracle(mean_before, example),
    "running_rate": Oracle(rate_before, example),
}
