"""The oracle of compute/ops/adagrad.py."""

from __future__ import annotations

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops._update import update


def formula(
    rate: float, number: int, g: Array, p: Array, n: Array, initial: float, epsilon: float
) -> tuple[Array, ...]:
    total = n + g * g
    return p - rate * g / (np.sqrt(total + initial) + epsilon), total


ORACLES = {
    **update("adagrad", formula, ("n",), {"initial": 0.1, "epsilon": 1e-10}),
}
