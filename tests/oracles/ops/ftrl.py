"""The oracle of compute/ops/ftrl.py."""

from __future__ import annotations

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops._update import update


def formula(
    rate: float, number: int, g: Array, p: Array, z: Array, n: Array, beta: float, l1: float, l2: float
) -> tuple[Array, ...]:
    begun = np.where(n == 0, -(p * (beta / rate + l2) + l1 * np.sign(p)), z)
    total = n + g * g
    leader = begun + g - (np.sqrt(total) - np.sqrt(n)) / rate * p
    beyond = np.sign(leader) * np.maximum(abs(leader) - l1, 0)
    return -beyond / ((beta + np.sqrt(total)) / rate + l2), leader, total


ORACLES = {
    **update("ftrl", formula, ("z", "n"), {"beta": 1.0, "l1": 0.05, "l2": 0.1}),
}
