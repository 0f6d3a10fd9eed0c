"""The product of two rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array, Op, given, out, size

HELP = "the sum of a b, row by row"
_MATRIX = ("f32", "rows", "columns")


def reference(rows: int, columns: int, a: Array, b: Array, y: Array) -> None:
    y[:] = (a.astype(np.float64) * b).sum(1)


def reference_gradient(rows: int, columns: int, dy: Array, a: Array, b: Array, da: Array, db: Array) -> None:
    da[:], db[:] = dy[:, None] * b, dy[:, None] * a


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    columns = n % 70
    return {
        "rows": n, "columns": columns, "a": rng.normal(size=(n, columns)), "b": rng.normal(size=(n, columns)),
        "dy": rng.normal(size=n),
    }


OPS = (
    Op("dot_forward",
       (size("rows"), size("columns"), given("a", *_MATRIX), given("b", *_MATRIX), out("y", "f32", "rows")),
       reference, example, rows=("rows",), tiles="rows", tolerance=1e-5),
    Op("dot_gradient",
       (size("rows"), size("columns"), given("dy", "f32", "rows"), given("a", *_MATRIX), given("b", *_MATRIX),
        out("da", *_MATRIX), out("db", *_MATRIX)),
       reference_gradient, example, rows=("rows",), tiles="rows"),
)
