"""The oracle of compute/ops/affine.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops import Oracle


def reference(n: int, scale: float, shift: float, y: Array, x: Array) -> None:
    y[:] = np.float64(np.float32(scale)) * x + np.float32(shift)


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {"n": n, "scale": 0.3, "shift": -2.0, "x": rng.normal(0, 3, n)}


ORACLES = {
    "affine": Oracle(reference, example),
}
