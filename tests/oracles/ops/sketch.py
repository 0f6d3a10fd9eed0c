"""The oracle of compute/ops/sketch.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.ops.sketch import CELLS, EDGES, QUARTILES
from streamtrain.compute.spec import Array
from tests.oracles.ops import oracle
from tests.oracles.ops._batch import weights

SHIFT, FIRST, SIDE = 47, (1023 - 32) << 5, CELLS // 2


def cell(x: Array) -> Array:
    """Returns the cells of float64 values."""
    away = (abs(x).view(np.int64) >> SHIFT) - FIRST + 1
    found: Array = SIDE + np.where(x < 0, -1, 1) * np.clip(away, 0, SIDE)
    return found


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


@oracle(example, 1e-12)
def sketch_add(rows: int, columns: int, column: int, width: int, numbers: Array, weight: Array, sketch: Array) -> None:
    counted = weight > 0
    np.add.at(sketch, cell(numbers[:, column])[counted], 1)
    sketch[CELLS] += counted.sum()


@oracle(example)
def sketch_bin(rows: int, columns: int, column: int, width: int, numbers: Array, sketch: Array, index: Array) -> None:
    edges = sketch[EDGES:] if sketch[CELLS] > 0 else sketch[:0]
    index[:] = np.searchsorted(edges, numbers[:, column], side="right")


@oracle(example_of_scale)
def sketch_scale(
    rows: int, columns: int, column: int, width: int, y_width: int, at: int, numbers: Array, sketch: Array,
    clip: float, y: Array,
) -> None:
    first, median, third = sketch[EDGES:]
    scale = (1 / (third - first) if third > first else 1.0) if sketch[CELLS] > 0 else 0.0
    y[:, at] = np.clip((numbers[:, column] - median) * scale, -clip, clip)
