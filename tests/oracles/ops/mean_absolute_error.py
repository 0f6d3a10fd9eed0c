"""The oracle of compute/ops/mean_absolute_error.py."""

from __future__ import annotations

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops._number import number


def at(error: Array) -> tuple[Array, Array]:
    return abs(error), np.sign(error)


ORACLES = {
    "mean_absolute_error": number(at),
}
