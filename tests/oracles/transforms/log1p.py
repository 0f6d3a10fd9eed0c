"""log(1 + x), of x above -1."""

from __future__ import annotations

import math

from streamtrain.columns.transforms.transform import Use
from tests.oracles.transforms import of_number


@of_number
def meaning(use: Use, value: float) -> float | None:
    return math.log1p(value) if value > -1 else None
