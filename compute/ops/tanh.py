"""The hyperbolic tangent. The formula lies in native/base/math.h."""

import numpy as np

from streamtrain.compute.ops.activation import Activation, activation, glorot
from streamtrain.compute.spec import Array

HELP = "activation tanh(x), between -1 and 1"


def forward(x: Array) -> Array:
    return np.asarray(np.tanh(x))


def slope(x: Array, y: Array) -> Array:
    return np.asarray(1 - y * y)


ACTIVATION = Activation(glorot)
OPS = activation("tanh", forward, slope)
