"""The self-normalizing unit (Klambauer, Unterthiner, Mayr, Hochreiter, 2017)."""

import numpy as np

from streamtrain.compute.ops.activation import Activation, activation, lecun
from streamtrain.compute.spec import Array

HELP = "activation 1.0507 x above 0, 1.7581 (e^x - 1) below; keeps mean 0 and variance 1"
SCALE, FLOOR = 1.0507009873554804934193349852946, 1.7580993408473768599402175208123


def forward(x: Array) -> Array:
    return np.where(x > 0, SCALE * x, FLOOR * np.expm1(np.minimum(x, 0)))


def slope(x: Array, y: Array) -> Array:
    return np.where(y > 0, SCALE, y + FLOOR)


ACTIVATION = Activation(lecun)
OPS = activation("selu", forward, slope)
