"""The oracle of compute/ops/focal.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops import Oracle
from tests.oracles.ops._batch import share, step, weights


def reference(
    rows: int, gamma: float, balance: float, z: Array, label: Array, weight: Array, step: Any, dz: Array, loss: Array
) -> None:
    counts, side = weight > 0, np.where(label >= 0.5, 1.0, -1.0)
    x = side * z.astype(np.float64)
    surprise, wrong = np.logaddexp(0, -x), np.exp(-np.logaddexp(0, x))
    factor = np.where(label >= 0.5, balance, 1 - balance) * wrong**gamma
    loss[:] = np.where(counts, factor * surprise, 0)
    slope = side * factor * (-gamma * (1 - wrong) * surprise - wrong)
    dz[:] = np.where(counts, weight * share(step) * slope, 0)


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    weight, z = weights(rng, n), rng.normal(0, 5, n)
    z[weight == 0] = np.nan   # what a row of weight 0 holds does not matter
    return {
        "rows": n, "gamma": 2.0, "balance": 0.25, "z": z, "label": rng.integers(0, 2, n), "weight": weight,
        "step": step(weight),
    }


ORACLES = {
    "focal": Oracle(reference, example),
}
