"""The products of all pairs of fields, added: the second order of a factorization machine (Rendle, 2010)."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array, Op, given, out, size

HELP = "the sum of the products of all pairs of fields, row by row"
_FIELDS = ("f32", "rows", "fields", "width")


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


OPS = (
    Op("factorization_forward",
       (size("rows"), size("fields"), size("width"), given("x", *_FIELDS), out("y", "f32", "rows")),
       reference, example, rows=("rows",), tiles="rows"),
    Op("factorization_gradient",
       (size("rows"), size("fields"), size("width"), given("dy", "f32", "rows"), given("x", *_FIELDS),
        out("dx", *_FIELDS)),
       reference_gradient, example, rows=("rows",), tiles="rows"),
)
