"""The oracle of compute/ops/fill.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops import Oracle


def reference(n: int, number: float, y: Array) -> None:
    y[:] = number


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {"n": n, "value": -0.5}


ORACLES = {
    "fill": Oracle(reference, example),
}
