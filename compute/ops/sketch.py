"""A column of numbers as counts in cells, and what quantiles of them make of a row: native/base/sketch.h."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.ops._batch import weights
from streamtrain.compute.spec import Array, Op, changed, given, out, part, size
from streamtrain.compute.spec import value as plain

HELP = "counts of a column's values in cells a 32nd apart, bins and robust scale by their quantiles"
SHIFT, FIRST, SIDE = 47, (1023 - 32) << 5, 64 << 5
CELLS = 2 * SIDE + 1
EDGES = CELLS + 1   # where they begin; before them the count of all
QUARTILES = 3


def cell(x: Array) -> Array:
    """Returns the cells of float64 values."""
    away = (abs(x).view(np.int64) >> SHIFT) - FIRST + 1
    found: Array = SIDE + np.where(x < 0, -1, 1) * np.clip(away, 0, SIDE)
    return found


def add(rows: int, columns: int, column: int, width: int, numbers: Array, weight: Array, sketch: Array) -> None:
    counted = weight > 0
    np.add.at(sketch, cell(numbers[:, column])[counted], 1)
    sketch[CELLS] += counted.sum()


def bin_of(rows: int, columns: int, column: int, width: int, numbers: Array, sketch: Array, index: Array) -> None:
    edges = sketch[EDGES:] if sketch[CELLS] > 0 else sketch[:0]
    index[:] = np.searchsorted(edges, numbers[:, column], side="right")


def scaled(
    rows: int, columns: int, column: int, width: int, y_width: int, at: int, numbers: Array, sketch: Array,
    clip: float, y: Array,
) -> None:
    first, median, third = sketch[EDGES:]
    scale = (1 / (third - first) if third > first else 1.0) if sketch[CELLS] > 0 else 0.0
    y[:, at] = np.clip((numbers[:, column] - median) * scale, -clip, clip)


def example(rng: np.random.Generator, n: int, edges: int = 0) -> dict[str, Any]:
    edges = edges or 1 + n % 9
    numbers = rng.normal(size=(n, 3)) * 10.0 ** rng.integers(-12, 12, (n, 3))
    sketch = np.zeros(EDGES + edges)
    sketch[rng.integers(0, CELLS, 5)] = 2
    sketch[CELLS] = 10 * (n % 4)
    sketch[EDGES:] = np.sort(rng.normal(size=edges) * (n % 5 > 0))
    return {
        "rows": n, "columns": 3, "column": 1, "width": len(sketch), "y_width": 6, "at": n % 6, "clip": 8.0,
        "numbers": np.where(rng.random((n, 3)) < 0.2, 0, numbers), "weight": weights(rng, n), "sketch": sketch,
        "y": np.zeros((n, 6)),
    }


def example_of_scale(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return example(rng, n, QUARTILES)


BATCH = (size("rows"), size("columns"), size("column"), size("width"))
NUMBERS, SKETCH = given("numbers", "f64", "rows", "columns"), ("f64", "width")
OPS = (
    Op("sketch_add", (*BATCH, NUMBERS, given("weight", "f32", "rows"), changed("sketch", *SKETCH)), add, example,
       each=("rows",), tolerance=1e-12),
    Op("sketch_bin", (*BATCH, NUMBERS, given("sketch", *SKETCH), out("index", "i32", "rows")), bin_of, example,
       each=("rows",)),
    Op(
        "sketch_scale",
        (*BATCH, size("y_width"), size("at"), NUMBERS, given("sketch", *SKETCH), plain("clip", "f64"),
         part("y", "f32", "rows", "y_width")),
        scaled, example_of_scale, each=("rows",),
    ),
)
