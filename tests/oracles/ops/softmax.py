"""The oracle of compute/ops/softmax.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops import Oracle


def probabilities(z: Array) -> Array:
    """Row by row, in float64."""
    power = np.exp(z.astype(np.float64) - z.max(1, keepdims=True))
    return np.asarray(power / power.sum(1, keepdims=True))


def reference(rows: int, classes: int, z: Array, p: Array) -> None:
    p[:] = probabilities(z)


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    classes = 2 + n % 70
    return {"rows": n, "classes": classes, "z": rng.normal(0, 5, (n, classes))}


ORACLES = {
    "softmax": Oracle(reference, example),
}
