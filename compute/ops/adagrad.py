"""AdaGrad (Duchi, Hazan, Singer: 2011)."""

from __future__ import annotations

import numpy as np

from streamtrain.compute.ops._update import update
from streamtrain.compute.spec import Array

HELP = "step by g over the root of the sum of g^2"


def formula(
    rate: float, number: int, g: Array, p: Array, n: Array, initial: float, epsilon: float
) -> tuple[Array, ...]:
    total = n + g * g
    return p - rate * g / (np.sqrt(total + initial) + epsilon), total


OPS = update("adagrad", formula, ("n",), {"initial": 0.1, "epsilon": 1e-10})
