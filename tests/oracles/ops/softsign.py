"""The oracle of compute/ops/softsign.py."""

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops.activation import activation


def forward(x: Array) -> Array:
    return np.asarray(x / (1 + abs(x)))


def slope(x: Array, y: Array) -> Array:
    return np.asarray((1 + abs(x)) ** -2.0)


ORACLES = {
    **activation("softsign", forward, slope),
}
