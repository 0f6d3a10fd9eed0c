"""ADADELTA (Zeiler: 2012)."""

from __future__ import annotations

import numpy as np

from streamtrain.compute.ops._update import update
from streamtrain.compute.spec import Array

HELP = "step by g, in the unit of earlier steps"


def formula(
    rate: float, number: int, g: Array, p: Array, v: Array, u: Array, rho: float, epsilon: float
) -> tuple[Array, ...]:
    second = rho * v + (1 - rho) * g * g
    way = g * np.sqrt(u + epsilon) / np.sqrt(second + epsilon)
    return p - rate * way, second, rho * u + (1 - rho) * way * way


OPS = update("adadelta", formula, ("v", "u"), {"rho": 0.9, "epsilon": 1e-06})
