"""The oracle of compute/ops/dense_finish.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops import Oracle


def reference(rows: int, outputs: int, bias: Array, activation: int, y: Array) -> None:
    y += bias
    if activation == 1:
        np.maximum(y, 0, out=y)


def reference_mask(n: int, mask: Array, dx: Array) -> None:
    dx[~(mask > 0)] = 0


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    outputs = 1 + n % 21
    return {
        "rows": n, "outputs": outputs, "bias": rng.normal(size=outputs), "activation": n % 2,
        "y": rng.normal(size=(n, outputs)), "n": n, "mask": rng.normal(size=n), "dx": rng.normal(size=n),
    }


ORACLES = {
    "dense_finish": Oracle(reference, example),
    "dense_finish_mask": Oracle(reference_mask, example),
}
