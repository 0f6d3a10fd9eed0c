"""The oracle of compute/ops/poisson.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops import Oracle
from tests.oracles.ops._batch import share, step, weights

LARGEST = 88.0   # log rate of a float32


def rate(n: int, z: Array, p: Array) -> None:
    p[:] = np.exp(np.minimum(z.astype(np.float64), LARGEST))


def reference(rows: int, z: Array, label: Array, weight: Array, step: Any, dz: Array, loss: Array, p: Array) -> None:
    counts, score = weight > 0, z.astype(np.float64)
    expected = np.exp(np.minimum(score, LARGEST))
    p[:] = expected
    count = label.astype(np.float64)
    own = np.where(count > 0, count * (np.log(np.where(count > 0, count, 1)) - score), 0)
    loss[:] = np.where(counts, expected - count + own, 0)
    dz[:] = np.where(counts, weight * share(step) * (expected - label), 0)


def prior(seen: Array, offset: Array) -> None:
    offset[:] = np.log((seen[1] + 0.5) / (seen[0] + 0.5))


def add(rows: int, label: Array, weight: Array, seen: Array) -> None:
    w = np.where(weight > 0, weight, 0).astype(np.float64)
    seen += [w.sum(), (w * label).sum()]


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    weight, z = weights(rng, n), rng.normal(0, 2, n)
    z[:1] = 100
    return {
        "rows": n, "n": n, "z": z, "label": rng.poisson(3, n), "weight": weight, "step": step(weight),
        "seen": [n, 2.0 * n],
    }


ORACLES = {
    "poisson": Oracle(reference, example),
    "poisson_rate": Oracle(rate, example),
    "poisson_prior": Oracle(prior, example),
    "poisson_seen": Oracle(add, example, 1e-12),
}
