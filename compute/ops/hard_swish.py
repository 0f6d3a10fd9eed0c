"""Swish of straight pieces and a parabola (Howard et al., 2019)."""

import numpy as np

from streamtrain.compute.ops.activation import Activation, activation, he
from streamtrain.compute.spec import Array

HELP = "activation x times hard_sigmoid(x)"


def forward(x: Array) -> Array:
    clipped_x = np.clip(x, -3, 3)
    return np.where(x > 3, x, clipped_x * (clipped_x + 3) / 6)


def slope(x: Array, y: Array) -> Array:
    return np.where(x <= -3, 0.0, np.where(x >= 3, 1.0, (2 * x + 3) / 6))


ACTIVATION = Activation(he)
OPS = activation("hard_swish", forward, slope)
