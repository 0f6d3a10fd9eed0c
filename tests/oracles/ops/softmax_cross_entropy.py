"""The oracle of compute/ops/softmax_cross_entropy.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops import Oracle
from tests.oracles.ops._batch import share, step, weights
from tests.oracles.ops.softmax import probabilities


def reference(
    rows: int, classes: int, z: Array, label: Array, weight: Array, step: Any, dz: Array, loss: Array, p: Array,
    rank: Array,
) -> None:
    probability, counts, every = probabilities(z), weight > 0, np.arange(rows)
    index = np.where((label >= 0) & (label < classes), label, 0)
    target = np.zeros((rows, classes))
    target[every, index] = 1
    logit = z.astype(np.float64)
    p[:] = probability
    rounded = probability.astype(np.float32)
    at_label = rounded[every, index][:, None]
    rank[:] = ((rounded > at_label) | ((rounded == at_label) & (np.arange(classes) < index[:, None]))).sum(1)
    largest = logit.max(1)
    log_total = np.log(np.exp(logit - largest[:, None]).sum(1))
    loss[:] = np.where(counts, log_total - (logit[every, index] - largest), 0)
    dz[:] = np.where(counts[:, None], (weight * share(step))[:, None] * (probability - target), 0)


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    classes, weight = 2 + n % 70, weights(rng, n)
    return {
        "rows": n, "classes": classes, "z": rng.normal(0, 5, (n, classes)), "label": rng.integers(-1, classes + 1, n),
        "weight": weight, "step": step(weight),
    }


ORACLES = {
    "softmax_cross_entropy": Oracle(reference, example),
}
