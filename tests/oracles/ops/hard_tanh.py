"""The oracle of compute/ops/hard_tanh.py."""

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops.activation import activation


def forward(x: Array) -> Array:
    return np.clip(x, -1, 1)


def slope(x: Array, y: Array) -> Array:
    return np.where((x > -1) & (x < 1), 1.0, 0.0)


ORACLES = {
    **activation("hard_tanh", forward, slope),
}
