"""The sigmoid linear unit, also called swish (Elfwing, Uchibe, Doya, 2017; Ramachandran, Zoph, Le, 2017)."""

import numpy as np

from streamtrain.compute.ops.activation import Activation, activation, he
from streamtrain.compute.spec import Array

HELP = "activation x / (1 + e^-x), also called swish"


def _sigmoid(x: Array) -> Array:
    return np.asarray(np.exp(-np.logaddexp(0, -x)))


def forward(x: Array) -> Array:
    return np.asarray(x * _sigmoid(x))


def slope(x: Array, y: Array) -> Array:
    clipped_x = np.clip(x, -1000, 1000)   # outside of it 0 or 1
    s = _sigmoid(clipped_x)
    return np.asarray(s * (1 + clipped_x * (1 - s)))


ACTIVATION = Activation(he)
OPS = activation("silu", forward, slope)
