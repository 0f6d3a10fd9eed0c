"""Columns of one matrix into those of another, or added to them."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array, Op, changed, given, part, size

HELP = "columns of a matrix into those of another, or added to them"


def reference(rows: int, count: int, given_width: int, first: int, width: int, at: int, x: Array, y: Array) -> None:
    y[:, at : at + count] = x[:, first : first + count]


def add(rows: int, count: int, given_width: int, first: int, width: int, at: int, x: Array, y: Array) -> None:
    y[:, at : at + count] += x[:, first : first + count]


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    count = n % 40
    return {
        "rows": n, "count": count, "given_width": count + 2, "from": n % 3, "width": count + 3, "at": n % 4,
        "x": rng.normal(size=(n, count + 2)), "y": rng.normal(size=(n, count + 3)),
    }


_ARGS = (*(size(name) for name in ("rows", "count", "given_width", "from", "width", "at")),
         given("x", "f32", "rows", "given_width"))  # fmt: skip
OPS = (
    Op("copy_columns", (*_ARGS, part("y", "f32", "rows", "width")), reference, example, rows=("rows",), tiles="rows"),
    Op("add_columns", (*_ARGS, changed("y", "f32", "rows", "width")), add, example, rows=("rows",), tiles="rows"),
)
