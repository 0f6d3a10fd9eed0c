"""The oracle of compute/ops/extremes.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops import Oracle
from tests.oracles.ops._batch import weights


def add(rows: int, columns: int, column: int, numbers: Array, weight: Array, extremes: Array) -> None:
    values = numbers[weight > 0, column]
    if len(values):
        before = extremes[1:] if extremes[0] > 0 else [values[0], values[0]]
        extremes[1:] = min(before[0], values.min()), max(before[1], values.max())
        extremes[0] += len(values)


def scaled(
    rows: int, columns: int, column: int, width: int, at: int, numbers: Array, extremes: Array, x: Array
) -> None:
    _, least, greatest = extremes
    scale = 1 / (greatest - least) if greatest > least else 0.0
    x[:, at] = np.clip((numbers[:, column] - least) * scale, 0, 1)


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {
        "rows": n, "columns": 3, "column": 1, "width": 6, "at": n % 6, "numbers": rng.normal(1, 3, (n, 3)),
        "weight": weights(rng, n), "extremes": [n % 3, -0.5 * (n % 3), 2.0 * (n % 3)], "x": np.zeros((n, 6)),
    }


ORACLES = {
    "extremes_add": Oracle(add, example, 1e-12),
    "extremes_scale": Oracle(scaled, example),
}
