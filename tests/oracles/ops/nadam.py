"""The oracle of compute/ops/nadam.py."""

from __future__ import annotations

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops._update import update


def formula(
    rate: float, number: int, g: Array, p: Array, m: Array, v: Array, beta1: float,
    beta2: float, epsilon: float, slowing: float
) -> tuple[Array, ...]:
    mu = [beta1 * (1 - 0.5 * slowing**t) for t in range(1, number + 2)]
    product = float(np.prod(mu[:-1]))
    first = beta1 * m + (1 - beta1) * g
    second = beta2 * v + (1 - beta2) * g * g
    ahead = (1 - mu[-2]) * g / (1 - product) + mu[-1] * first / (1 - product * mu[-1])
    return p - rate * ahead / (np.sqrt(second / (1 - beta2**number)) + epsilon), first, second


ORACLES = {
    **update("nadam", formula, ("m", "v"), {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, "slowing": 0.96**0.004}),
}
