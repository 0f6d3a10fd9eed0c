"""The oracle of compute/ops/factorization.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops import Oracle


def reference(rows: int, fields: int, width: int, x: Array, y: Array) -> None:
    wide = x.astype(np.float64)
    before = np.cumsum(wide, 1)[:, :-1]   # of the fields before each
    y[:] = (wide[:, 1:] * before).sum((1, 2))


def reference_gradient(rows: int, fields: int, width: int, dy: Array, x: Array, dx: Array) -> None:
    wide = x.astype(np.float64)
    dx[:] = dy[:, None, None] * (wide.sum(1, keepdims=True) - wide)


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    fields, width = 1 + n % 7, 1 + n % 70
    return {
        "rows": n, "fields": fields, "width": width, "x": rng.normal(size=(n, fields, width)), "dy": rng.normal(size=n),
    }


ORACLES = {
    "factorization_forward": Oracle(reference, example),
    "factorization_gradient": Oracle(reference_gradient, example),
}
