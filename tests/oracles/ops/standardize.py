"""The oracle of compute/ops/standardize.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops import Oracle
from tests.oracles.ops._batch import with_missing


def reference(
    rows: int, columns: int, width: int, at: int, numbers: Array, mean: Array, scale: Array, clip: Array, x: Array
) -> None:
    z = np.clip((numbers - mean) * scale, -clip, clip)   # rounded to float32 last
    x[:, at : at + columns] = np.where(np.isnan(numbers), 0, z)


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    columns = n % 40
    numbers = with_missing(rng, rng.normal(5, 2, (n, columns)))
    return {
        "rows": n, "columns": columns, "width": columns + 3, "at": n % 4, "numbers": numbers,
        "mean": rng.normal(5, 2, columns), "scale": rng.uniform(0.1, 2, columns),
        "clip": np.where(rng.random(columns) < 0.5, 1.0, np.inf), "x": np.zeros((n, columns + 3)),
    }


ORACLES = {
    "standardize": Oracle(reference, example),
}
