"""The oracle of compute/ops/dense_forward.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops import Oracle


def reference(
    rows: int, inputs: int, outputs: int, x: Array, w: Array, bias: Array, activation: int, y: Array
) -> None:
    product = x.astype(np.float64) @ w + bias
    y[:] = np.maximum(product, 0) if activation == 1 else product


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    inputs, outputs = 1 + n % 37, 1 + n % 21
    return {
        "rows": n, "inputs": inputs, "outputs": outputs, "activation": n % 2, "x": rng.normal(size=(n, inputs)),
        "w": rng.normal(size=(inputs, outputs)), "bias": rng.normal(size=outputs),
    }


ORACLES = {
    "dense_forward": Oracle(reference, example),
}
