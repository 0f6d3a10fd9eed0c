"""RMSProp (Tieleman, Hinton: 2012)."""

from __future__ import annotations

import numpy as np

from streamtrain.compute.ops._update import update
from streamtrain.compute.spec import Array

HELP = "step by g over the root of the running mean of g^2"


def formula(rate: float, number: int, g: Array, p: Array, v: Array, alpha: float, epsilon: float) -> tuple[Array, ...]:
    second = alpha * v + (1 - alpha) * g * g
    return p - rate * g / (np.sqrt(second) + epsilon), second


OPS = update("rmsprop", formula, ("v",), {"alpha": 0.99, "epsilon": 1e-08})
