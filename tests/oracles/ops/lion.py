"""The oracle of compute/ops/lion.py."""

from __future__ import annotations

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops._update import update


def formula(rate: float, number: int, g: Array, p: Array, m: Array, beta1: float, beta2: float) -> tuple[Array, ...]:
    ahead = beta1 * m + (1 - beta1) * g
    return p - rate * np.sign(ahead), beta2 * m + (1 - beta2) * g


ORACLES = {
    **update("lion", formula, ("m",), {"beta1": 0.9, "beta2": 0.99}),
}
