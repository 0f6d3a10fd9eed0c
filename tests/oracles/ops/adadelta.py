"""The oracle of compute/ops/adadelta.py."""

from __future__ import annotations

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops._update import update


def formula(
    rate: float, number: int, g: Array, p: Array, v: Array, u: Array, rho: float, epsilon: float
) -> tuple[Array, ...]:
    second = rho * v + (1 - rho) * g * g
    way = g * np.sqrt(u + epsilon) / np.sqrt(second + epsilon)
    return p - rate * way, second, rho * u + (1 - rho) * way * way


ORACLES = {
    **update("adadelta", formula, ("v", "u"), {"rho": 0.9, "epsilon": 1e-06}),
}
