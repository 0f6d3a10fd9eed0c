"""The leaky rectifier (Maas, Hannun, Ng, 2013)."""

import numpy as np

from streamtrain.compute.ops.activation import Activation, activation, he
from streamtrain.compute.spec import Array

HELP = "activation x above 0, x / 100 below"


def forward(x: Array) -> Array:
    return np.where(x < 0, 0.01 * x, x)


def slope(x: Array, y: Array) -> Array:
    return np.where(y > 0, 1.0, 0.01)


ACTIVATION = Activation(he)
OPS = activation("leaky_relu", forward, slope)
