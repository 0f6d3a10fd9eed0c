"""The oracle of compute/ops/hard_swish.py."""

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops.activation import activation


def forward(x: Array) -> Array:
    clipped_x = np.clip(x, -3, 3)
    return np.where(x > 3, x, clipped_x * (clipped_x + 3) / 6)


def slope(x: Array, y: Array) -> Array:
    return np.where(x <= -3, 0.0, np.where(x >= 3, 1.0, (2 * x + 3) / 6))


ORACLES = {
    **activation("hard_swish", forward, slope),
}
