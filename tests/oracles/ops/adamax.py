"""The oracle of compute/ops/adamax.py."""

from __future__ import annotations

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops._update import update


def formula(
    rate: float, number: int, g: Array, p: Array, m: Array, u: Array, beta1: float, beta2: float, epsilon: float
) -> tuple[Array, ...]:
    first = beta1 * m + (1 - beta1) * g
    most = np.maximum(beta2 * u, abs(g) + epsilon)
    return p - rate / (1 - beta1**number) * first / most, first, most


ORACLES = {
    **update("adamax", formula, ("m", "u"), {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-08}),
}
