"""The oracle of compute/ops/dense_grad_input.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops import Oracle


def reference(
    rows: int, inputs: int, outputs: int, dy: Array, w: Array, mask: Array | None, dx: Array
) -> None:
    product = dy.astype(np.float64) @ w.T
    dx[:] = product if mask is None else np.where(mask > 0, product, 0)


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    inputs, outputs = 1 + n % 37, 1 + n % 21
    return {
        "rows": n, "inputs": inputs, "outputs": outputs, "dy": rng.normal(size=(n, outputs)),
        "w": rng.normal(size=(inputs, outputs)), "mask": rng.normal(size=(n, inputs)) if n % 2 else None,
    }


ORACLES = {
    "dense_grad_input": Oracle(reference, example),
}
