"""The oracle of compute/ops/mean_squared_error.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops import Oracle
from tests.oracles.ops._number import number


def at(error: Array) -> tuple[Array, Array]:
    return error * error, 2 * error


def undo(n: int, z: Array, mean: Array, scale: Array, p: Array) -> None:
    p[:] = z / scale[0] + mean[0]


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {"n": n, "z": rng.normal(size=n), "mean": [41.0], "scale": [0.1]}


ORACLES = {
    "mean_squared_error": number(at),
    "unstandardize": Oracle(undo, example),
}
