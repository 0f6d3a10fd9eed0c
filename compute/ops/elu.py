"""The exponential linear unit (Clevert, Unterthiner, Hochreiter, 2015)."""

import numpy as np

from streamtrain.compute.ops.activation import Activation, activation, he
from streamtrain.compute.spec import Array

HELP = "activation x above 0, e^x - 1 below"


def forward(x: Array) -> Array:
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0)))


def slope(x: Array, y: Array) -> Array:
    return np.where(y > 0, 1.0, y + 1)


ACTIVATION = Activation(he)
OPS = activation("elu", forward, slope)
