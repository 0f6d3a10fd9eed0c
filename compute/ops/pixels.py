"""Bytes into columns of the input matrix, centred: a first layer learns badly from what lies on one side of 0."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array, Op, given, part, size

HELP = "byte / 255 - 0.5, into the input matrix"


def reference(rows: int, columns: int, width: int, at: int, pixels: Array, x: Array) -> None:
    x[:, at : at + columns] = pixels.astype(x.dtype) / 255 - 0.5


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    columns = n % 40
    return {
        "rows": n, "columns": columns, "width": columns + 3, "at": n % 4,
        "pixels": rng.integers(0, 256, (n, columns)), "x": np.zeros((n, columns + 3)),
    }


OPS = (
    Op(
        "pixels",
        (size("rows"), size("columns"), size("width"), size("at"), given("pixels", "u8", "rows", "columns"),
         part("x", "f32", "rows", "width")),
        reference, example, rows=("rows",), tiles="rows",
    ),
)
