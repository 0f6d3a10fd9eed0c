"""The oracle of compute/ops/elu.py."""

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops.activation import activation


def forward(x: Array) -> Array:
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0)))


def slope(x: Array, y: Array) -> Array:
    return np.where(y > 0, 1.0, y + 1)


ORACLES = {
    **activation("elu", forward, slope),
}
