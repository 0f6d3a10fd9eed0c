"""The oracle of compute/ops/quantile.py."""

from __future__ import annotations

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops._number import number


def loss_at(error: Array, at: float) -> tuple[Array, Array]:
    slope = np.where(error < 0, -at, np.where(error > 0, 1 - at, 0))
    return slope * error, slope


ORACLES = {
    "quantile": number(loss_at, at=0.8),
}
