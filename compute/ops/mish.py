"""Mish: x tanh(log(1 + e^x)) (Misra, 2019). The formula lies in native/kernels/mish.h."""

import numpy as np

from streamtrain.compute.ops.activation import Activation, activation, he
from streamtrain.compute.spec import Array

HELP = "activation x tanh(log(1 + e^x)), smooth, unbounded above"


def forward(x: Array) -> Array:
    return np.asarray(x * np.tanh(np.logaddexp(0, x)))


def slope(x: Array, y: Array) -> Array:
    w = np.tanh(np.logaddexp(0, x))
    return np.asarray(w + x * (1 - w * w) / (1 + np.exp(-x)))


ACTIVATION = Activation(he)
OPS = activation("mish", forward, slope)
