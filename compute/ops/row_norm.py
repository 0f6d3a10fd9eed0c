"""Rows of mean 0 and variance 1, or of mean square 1, times a learned scale."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Arg, Array, Op, given, out, size, value

HELP = "rows of mean 0 and variance 1, or of mean square 1, by a scale for each column"
_MATRIX, _ROW, _COLUMN = ("f32", "rows", "columns"), ("f32", "rows"), ("f32", "columns")


def reference(
    rows: int, columns: int, centers: int, epsilon: float, x: Array, scale: Array, shift: Array | None, y: Array,
    mean: Array, factor: Array,
) -> None:
    wide = x.astype(np.float64)
    mean[:] = wide.mean(1) if centers else 0
    apart = wide - mean[:, None]
    factor[:] = 1 / np.sqrt((apart**2).mean(1) + epsilon)
    y[:] = apart * factor[:, None] * scale + (0 if shift is None else shift)


def reference_gradient(
    rows: int, columns: int, centers: int, dy: Array, x: Array, scale: Array, mean: Array, factor: Array, dx: Array
) -> None:
    g, h = dy.astype(np.float64) * scale, (x.astype(np.float64) - mean[:, None]) * factor[:, None]
    level = g.mean(1, keepdims=True) if centers else 0
    dx[:] = (g - level - h * (g * h).mean(1, keepdims=True)) * factor[:, None]


def reference_scale(
    rows: int, columns: int, dy: Array, x: Array, mean: Array, factor: Array, dscale: Array, dshift: Array | None
) -> None:
    h = (x.astype(np.float64) - mean[:, None]) * factor[:, None]
    dscale[:] = (dy * h).sum(0)
    if dshift is not None:
        dshift[:] = dy.astype(np.float64).sum(0)


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    columns, centers = 1 + n % 70, n % 2
    return {
        "rows": n, "columns": columns, "centers": centers, "epsilon": 1e-3, "x": rng.normal(1, 2, (n, columns)),
        "scale": rng.normal(1, 0.3, columns), "shift": rng.normal(size=columns) if centers else None,
        "dy": rng.normal(size=(n, columns)), "mean": rng.normal(1, 0.1, n) * centers, "factor": rng.uniform(0.2, 1, n),
        "dshift": np.zeros(columns) if centers else None,
    }


_SAVED = (given("mean", *_ROW), given("factor", *_ROW))
OPS = (
    Op("row_norm_forward",
       (size("rows"), size("columns"), value("centers", "i32"), value("epsilon"), given("x", *_MATRIX),
        given("scale", *_COLUMN), given("shift", *_COLUMN, optional=True), out("y", *_MATRIX), out("mean", *_ROW),
        out("factor", *_ROW)),
       reference, example, rows=("rows",), tiles="rows"),
    Op("row_norm_gradient",
       (size("rows"), size("columns"), value("centers", "i32"), given("dy", *_MATRIX), given("x", *_MATRIX),
        given("scale", *_COLUMN), *_SAVED, out("dx", *_MATRIX)),
       reference_gradient, example, rows=("rows",), tiles="rows"),
    Op("row_norm_grad_scale",
       (size("rows"), size("columns"), given("dy", *_MATRIX), given("x", *_MATRIX), *_SAVED, out("dscale", *_COLUMN),
        Arg("dshift", "out", "f32", ("columns",), optional=True)),
       reference_scale, example, each=("columns",), tiles="sum"),
)
