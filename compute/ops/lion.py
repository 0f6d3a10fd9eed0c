"""Lion (Chen et al.: 2023)."""

from __future__ import annotations

import numpy as np

from streamtrain.compute.ops._update import update
from streamtrain.compute.spec import Array

HELP = "step by the sign of a running mean of g"


def formula(rate: float, number: int, g: Array, p: Array, m: Array, beta1: float, beta2: float) -> tuple[Array, ...]:
    ahead = beta1 * m + (1 - beta1) * g
    return p - rate * np.sign(ahead), beta2 * m + (1 - beta2) * g


OPS = update("lion", formula, ("m",), {"beta1": 0.9, "beta2": 0.99})
