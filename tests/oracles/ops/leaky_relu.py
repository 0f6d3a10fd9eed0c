"""The oracle of compute/ops/leaky_relu.py."""

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops.activation import activation


def forward(x: Array) -> Array:
    return np.where(x < 0, 0.01 * x, x)


def slope(x: Array, y: Array) -> Array:
    return np.where(y > 0, 1.0, 0.01)


ORACLES = {
    **activation("leaky_relu", forward, slope),
}
