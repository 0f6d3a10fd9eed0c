"""The hyperbolic tangent in three straight pieces (Collobert, 2004)."""

import numpy as np

from streamtrain.compute.ops.activation import Activation, activation, glorot
from streamtrain.compute.spec import Array

HELP = "activation x held between -1 and 1"


def forward(x: Array) -> Array:
    return np.clip(x, -1, 1)


def slope(x: Array, y: Array) -> Array:
    return np.where((x > -1) & (x < 1), 1.0, 0.0)


ACTIVATION = Activation(glorot)
OPS = activation("hard_tanh", forward, slope)
