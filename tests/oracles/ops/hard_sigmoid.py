"""The oracle of compute/ops/hard_sigmoid.py."""

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops.activation import activation


def forward(x: Array) -> Array:
    return np.clip((x + 3) / 6, 0, 1)


def slope(x: Array, y: Array) -> Array:
    return np.where((x > -3) & (x < 3), 1 / 6, 0.0)


ORACLES = {
    **activation("hard_sigmoid", forward, slope),
}
