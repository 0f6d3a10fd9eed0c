"""A sigmoid with slow ends (Turian, Bergstra, Bengio, 2009)."""

import numpy as np

from streamtrain.compute.ops.activation import Activation, activation, glorot
from streamtrain.compute.spec import Array

HELP = "activation x / (1 + |x|), between -1 and 1"


def forward(x: Array) -> Array:
    return np.asarray(x / (1 + abs(x)))


def slope(x: Array, y: Array) -> Array:
    return np.asarray((1 + abs(x)) ** -2.0)


ACTIVATION = Activation(glorot)
OPS = activation("softsign", forward, slope)
