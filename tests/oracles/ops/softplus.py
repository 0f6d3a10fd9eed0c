"""The oracle of compute/ops/softplus.py."""

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops.activation import activation


def forward(x: Array) -> Array:
    return np.asarray(np.logaddexp(0, x))


def slope(x: Array, y: Array) -> Array:
    return np.asarray(np.exp(-np.logaddexp(0, -x)))


ORACLES = {
    **activation("softplus", forward, slope),
}
