"""The oracle of compute/ops/tanh.py."""

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops.activation import activation


def forward(x: Array) -> Array:
    return np.asarray(np.tanh(x))


def slope(x: Array, y: Array) -> Array:
    return np.asarray(1 - y * y)


ORACLES = {
    **activation("tanh", forward, slope),
}
