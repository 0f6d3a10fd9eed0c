"""Huber loss of a number: a square that goes on as a line."""

from __future__ import annotations

import numpy as np

from streamtrain.compute.ops._number import number_op
from streamtrain.compute.spec import Array

HELP = "square of a small error, a line beyond delta"


def at(error: Array, delta: float) -> tuple[Array, Array]:
    near = np.minimum(abs(error), delta)
    return near * (abs(error) - near / 2), np.copysign(near, error)


OPS = (number_op("huber", at, delta=0.75),)
