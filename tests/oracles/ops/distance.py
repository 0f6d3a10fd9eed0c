"""The oracle of compute/ops/distance.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops import Oracle


def reference(rows: int, columns: int, a: Array, b: Array, y: Array) -> None:
    y[:] = np.sqrt(((a.astype(np.float64) - b) ** 2).sum(1))


def reference_gradient(rows: int, columns: int, dy: Array, y: Array, a: Array, b: Array, da: Array, db: Array) -> None:
    share = np.where(y > 0, dy / np.where(y > 0, y, 1), 0)[:, None]
    da[:] = share * (a.astype(np.float64) - b)
    db[:] = -share * (a.astype(np.float64) - b)


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    columns = n % 70
    return {
        "rows": n, "columns": columns, "a": rng.normal(size=(n, columns)), "b": rng.normal(size=(n, columns)),
        "dy": rng.normal(size=n), "y": np.where(rng.random(n) < 0.1, 0, rng.uniform(1, 3, n)),
    }


ORACLES = {
    "distance_forward": Oracle(reference, example),
    "distance_gradient": Oracle(reference_gradient, example),
}
