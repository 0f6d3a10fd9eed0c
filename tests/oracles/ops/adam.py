"""The oracle of compute/ops/adam.py."""

from __future__ import annotations

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops._update import update


def formula(
    rate: float, number: int, g: Array, p: Array, m: Array, v: Array, beta1: float, beta2: float, epsilon: float
) -> tuple[Array, ...]:
    first = beta1 * m + (1 - beta1) * g
    second = beta2 * v + (1 - beta2) * g * g
    ahead, spread = first / (1 - beta1**number), second / (1 - beta2**number)
    return p - rate * ahead / (np.sqrt(spread) + epsilon), first, second


ORACLES = {
    **update("adam", formula, ("m", "v"), {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-08}),
}
