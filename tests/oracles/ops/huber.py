"""The oracle of compute/ops/huber.py."""

from __future__ import annotations

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops._number import number


def at(error: Array, delta: float) -> tuple[Array, Array]:
    near = np.minimum(abs(error), delta)
    return near * (abs(error) - near / 2), np.copysign(near, error)


ORACLES = {
    "huber": number(at, delta=0.75),
}
