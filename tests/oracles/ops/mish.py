"""The oracle of compute/ops/mish.py."""

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops.activation import activation


def forward(x: Array) -> Array:
    return np.asarray(x * np.tanh(np.logaddexp(0, x)))


def slope(x: Array, y: Array) -> Array:
    w = np.tanh(np.logaddexp(0, x))
    return np.asarray(w + x * (1 - w * w) / (1 + np.exp(-x)))


ORACLES = {
    **activation("mish", forward, slope),
}
