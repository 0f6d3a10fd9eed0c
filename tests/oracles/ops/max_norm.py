"""The oracle of compute/ops/max_norm.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops import Oracle
from tests.oracles.ops._batch import step


def reference(inputs: int, outputs: int, step: Any, limit: float, w: Array) -> None:
    if step.weight_sum > 0:
        norms = np.sqrt((w.astype(np.float64) ** 2).sum(0))
        w *= np.where(norms > limit, limit / np.where(norms > 0, norms, 1), 1)


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    outputs = 1 + n % 7
    w = rng.normal(size=(n, outputs)) * rng.choice([0.01, 1], outputs)
    return {"inputs": n, "outputs": outputs, "step": step(), "limit": 0.7, "w": w}


ORACLES = {
    "max_norm": Oracle(reference, example),
}
