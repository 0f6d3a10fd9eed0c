"""The least and the greatest of a column of numbers, and a row's place between them."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.ops._batch import weights
from streamtrain.compute.spec import Array, Op, changed, given, part, size

HELP = "least and greatest of a column, and where a number lies from one to the other"


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


BATCH = (size("rows"), size("columns"), size("column"))
NUMBERS = given("numbers", "f64", "rows", "columns")
OPS = (
    Op("extremes_add", (*BATCH, NUMBERS, given("weight", "f32", "rows"), changed("extremes", "f64", 3)), add, example,
       tolerance=1e-12),
    Op(
        "extremes_scale",
        (*BATCH, size("width"), size("at"), NUMBERS, given("extremes", "f64", 3), part("x", "f32", "rows", "width")),
        scaled, example, each=("rows",),
    ),
)
