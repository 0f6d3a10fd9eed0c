"""The oracle of compute/ops/normal.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops import Oracle
from tests.oracles.ops.uniform import philox


def reference(n: int, x: Array, seed: int, stream: int, mean: float, deviation: float) -> None:
    words = philox(seed, np.arange(3 * n), stream).reshape(n, 12) >> np.uint64(8)
    x[:] = (words.sum(1).astype(np.float64) * 2.0**-24 - 6) * deviation + mean


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {"n": n, "seed": 0x1234567887654321, "stream": 7, "mean": -0.25, "deviation": 0.5}


ORACLES = {
    "normal_fill": Oracle(reference, example),
}
