"""The oracle of compute/ops/unit_rows.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops import Oracle


def reference(rows: int, columns: int, x: Array, y: Array, length: Array) -> None:
    found = np.sqrt((x.astype(np.float64) ** 2).sum(1))
    length[:] = np.where(found > 0, found, 1)
    y[:] = x / length[:, None]


def reference_gradient(rows: int, columns: int, dy: Array, y: Array, length: Array, dx: Array) -> None:
    along = (dy.astype(np.float64) * y).sum(1, keepdims=True)
    dx[:] = (dy - y * along) / length[:, None]


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    columns = n % 70
    x = rng.normal(size=(n, columns))
    x[n // 2 : n // 2 + 1] = 0
    return {
        "rows": n, "columns": columns, "x": x, "y": x / 3, "length": rng.uniform(1, 4, n),
        "dy": rng.normal(size=(n, columns)),
    }


ORACLES = {
    "unit_rows_forward": Oracle(reference, example),
    "unit_rows_gradient": Oracle(reference_gradient, example),
}
