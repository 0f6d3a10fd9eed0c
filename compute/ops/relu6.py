"""A rectifier with a lid (Krizhevsky, 2010)."""

import numpy as np

from streamtrain.compute.ops.activation import Activation, activation, he
from streamtrain.compute.spec import Array

HELP = "activation x held between 0 and 6"


def forward(x: Array) -> Array:
    return np.clip(x, 0, 6)


def slope(x: Array, y: Array) -> Array:
    return np.where((y > 0) & (y < 6), 1.0, 0.0)


ACTIVATION = Activation(he)
OPS = activation("relu6", forward, slope)
