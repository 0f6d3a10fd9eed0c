"""Loss of a quantile of a number, the pinball loss."""

from __future__ import annotations

import numpy as np

from streamtrain.compute.ops._number import number_op
from streamtrain.compute.spec import Array

HELP = "error of a quantile of a number"


def loss_at(error: Array, at: float) -> tuple[Array, Array]:
    slope = np.where(error < 0, -at, np.where(error > 0, 1 - at, 0))
    return slope * error, slope


OPS = (number_op("quantile", loss_at, at=0.8),)
