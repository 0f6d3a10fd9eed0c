"""Absolute error of a number."""

from __future__ import annotations

import numpy as np

from streamtrain.compute.ops._number import number_op
from streamtrain.compute.spec import Array

HELP = "absolute error of a number"


def at(error: Array) -> tuple[Array, Array]:
    return abs(error), np.sign(error)


OPS = (number_op("mean_absolute_error", at),)
