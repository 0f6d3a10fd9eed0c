"""Log-cosh loss of a number."""

from __future__ import annotations

import numpy as np

from streamtrain.compute.ops._number import number_op
from streamtrain.compute.spec import Array

HELP = "log cosh of the error of a number"


def at(error: Array) -> tuple[Array, Array]:
    return np.logaddexp(error, -error) - np.log(2), np.tanh(error)


OPS = (number_op("log_cosh", at),)
