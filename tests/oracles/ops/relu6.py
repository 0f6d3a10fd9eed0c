"""The oracle of compute/ops/relu6.py."""

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops.activation import activation


def forward(x: Array) -> Array:
    return np.clip(x, 0, 6)


def slope(x: Array, y: Array) -> Array:
    return np.where((y > 0) & (y < 6), 1.0, 0.0)


ORACLES = {
    **activation("relu6", forward, slope),
}
