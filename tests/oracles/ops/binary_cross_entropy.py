"""The oracle of compute/ops/binary_cross_entropy.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops import Oracle
from tests.oracles.ops._batch import share, step, weights


def reference(
    rows: int, z: Array, label: Array, weight: Array, step: Any, dz: Array, loss: Array, p: Array
) -> None:
    logit = z.astype(np.float64)
    probability = np.exp(-np.logaddexp(0, -logit))
    counts = weight > 0
    p[:] = probability
    loss[:] = np.where(counts, np.logaddexp(0, logit) - logit * label, 0)
    dz[:] = np.where(counts, weight * share(step) * (probability - label), 0)


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    weight, z = weights(rng, n), rng.normal(0, 5, n)
    z[weight == 0] = np.nan   # what a row of weight 0 holds does not matter
    return {"rows": n, "z": z, "label": rng.integers(0, 2, n), "weight": weight, "step": step(weight)}


ORACLES = {
    "binary_cross_entropy": Oracle(reference, example),
}
