"""The logistic function; also what turns a binary model's output into a probability."""

import numpy as np

from streamtrain.compute.ops.activation import Activation, activation, glorot
from streamtrain.compute.spec import Array

HELP = "activation 1 / (1 + e^-x), between 0 and 1"


def forward(x: Array) -> Array:
    return np.asarray(np.exp(-np.logaddexp(0, -x)))


def slope(x: Array, y: Array) -> Array:
    return np.asarray(y * (1 - y))


ACTIVATION = Activation(glorot)
OPS = activation("sigmoid", forward, slope)
