"""The oracle of compute/ops/selu.py."""

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops.activation import activation

SCALE, FLOOR = 1.0507009873554804934193349852946, 1.7580993408473768599402175208123


def forward(x: Array) -> Array:
    return np.where(x > 0, SCALE * x, FLOOR * np.expm1(np.minimum(x, 0)))


def slope(x: Array, y: Array) -> Array:
    return np.where(y > 0, SCALE, y + FLOOR)


ORACLES = {
    **activation("selu", forward, slope),
}
