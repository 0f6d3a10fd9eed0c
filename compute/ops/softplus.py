"""A smooth rectifier (Dugas, Bengio, Bélisle, Nadeau, Garcia, 2000)."""

import numpy as np

from streamtrain.compute.ops.activation import Activation, activation, he
from streamtrain.compute.spec import Array

HELP = "activation log(1 + e^x), above 0"


def forward(x: Array) -> Array:
    return np.asarray(np.logaddexp(0, x))


def slope(x: Array, y: Array) -> Array:
    return np.asarray(np.exp(-np.logaddexp(0, -x)))


ACTIVATION = Activation(he)
OPS = activation("softplus", forward, slope)
