"""The oracle of compute/ops/rmsprop.py."""

from __future__ import annotations

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops._update import update


def formula(rate: float, number: int, g: Array, p: Array, v: Array, alpha: float, epsilon: float) -> tuple[Array, ...]:
    second = alpha * v + (1 - alpha) * g * g
    return p - rate * g / (np.sqrt(second) + epsilon), second


ORACLES = {
    **update("rmsprop", formula, ("v",), {"alpha": 0.99, "epsilon": 1e-08}),
}
