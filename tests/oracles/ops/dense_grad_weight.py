"""The oracle of compute/ops/dense_grad_weight.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.ops.dense_grad_weight import TOTALS
from streamtrain.compute.spec import Array
from tests.oracles.ops import Oracle


def reference(
    rows: int, inputs: int, outputs: int, x: Array, dy: Array, dw: Array, db: Array, totals: Array | None
) -> None:
    dw[:] = x.astype(np.float64).T @ dy
    db[:] = dy.astype(np.float64).sum(0)


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    inputs, outputs = 1 + n % 37, 1 + n % 21
    return {
        "rows": n, "inputs": inputs, "outputs": outputs, "x": rng.normal(size=(n, inputs)),
        "dy": rng.normal(size=(n, outputs)), "totals": np.zeros((inputs, TOTALS)),
    }


ORACLES = {
    "dense_grad_weight": Oracle(reference, example),
}
