"""The oracle of compute/ops/lamb.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops._update import update


def _direction(
    number: int, g: Array, p: Array, m: Array, v: Array, beta1: float, beta2: float, epsilon: float, decay: float
) -> tuple[Array, Array, Array]:
    first = beta1 * m + (1 - beta1) * g
    second = beta2 * v + (1 - beta2) * g * g
    ahead, spread = first / (1 - beta1**number), second / (1 - beta2**number)
    return ahead / (np.sqrt(spread) + epsilon) + decay * p, first, second


def of_rows(rate: float, number: int, g: Array, p: Array, *rest: Any) -> tuple[Array, ...]:
    """Returns the updated rows of a table, whose norm no step knows."""
    way, first, second = _direction(number, g, p, *rest)
    return p - rate * way, first, second


def formula(rate: float, number: int, g: Array, p: Array, *rest: Any) -> tuple[Array, ...]:
    way, first, second = _direction(number, g, p, *rest)
    size, length = np.linalg.norm(p), np.linalg.norm(way)
    ratio = size / length if size > 0 and length > 0 else 1.0
    return p - rate * ratio * way, first, second


ORACLES = {
    **update("lamb", formula, ("m", "v"), {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-6, "decay": 0.01}, of_rows),
}
