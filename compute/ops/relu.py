"""The rectifier. Dense layers have it built into their kernels; these stand alone."""

import numpy as np

from streamtrain.compute.ops.activation import Activation, activation, he
from streamtrain.compute.spec import Array

HELP = "activation max(x, 0)"


def forward(x: Array) -> Array:
    return np.where(x < 0, 0, x)


def slope(x: Array, y: Array) -> Array:
    return np.where(y > 0, 1.0, 0.0)


ACTIVATION = Activation(he)
OPS = activation("relu", forward, slope)
