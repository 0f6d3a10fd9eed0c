"""Columns of mean 0 and variance 1 over the rows of a batch, times a learned scale; running statistics behind it."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.ops._batch import step, weights
from streamtrain.compute.spec import Array, Op, changed, given, out, size, step_changed, value

HELP = "columns of mean 0 and variance 1 over the rows of a batch, by a scale for each"
_MATRIX, _ROW, _COLUMN, _ONE = ("f32", "rows", "columns"), ("f32", "rows"), ("f32", "columns"), ("f32", 1)


def reference_sum(rows: int, columns: int, x: Array, weight: Array, total: Array, count: Array) -> None:
    total[:] = x[weight > 0].astype(np.float64).sum(0)
    count[:] = (weight > 0).sum()


def reference_squares(
    rows: int, columns: int, x: Array, weight: Array, total: Array, count: Array, squares: Array
) -> None:
    mean = total.astype(np.float64) / count[0]
    squares[:] = ((x[weight > 0].astype(np.float64) - mean) ** 2).sum(0)


def reference_settle(
    columns: int, least: int, momentum: float, epsilon: float, count: Array, total: Array, squares: Array, step: Any,
    running_mean: Array, running_variance: Array, mean: Array, factor: Array,
) -> None:
    rows = float(count[0])
    apart, own = total.astype(np.float64) / rows - running_mean, rows >= least
    mean[:] = total / rows if own else running_mean
    factor[:] = 1 / np.sqrt((squares / rows if own else running_variance).astype(np.float64) + epsilon)
    if rows < 1:
        return
    part, wide = momentum * min(1.0, rows / least), squares.astype(np.float64)
    variance = wide / (rows - 1) if own else wide / rows + (1 - part) * apart**2
    running_mean += part * apart
    running_variance += part * (variance - running_variance)
    step.not_finite |= int(not (np.isfinite(running_mean).all() and np.isfinite(running_variance).all()))


def reference_factor(columns: int, epsilon: float, running_variance: Array, factor: Array) -> None:
    factor[:] = 1 / np.sqrt(running_variance.astype(np.float64) + epsilon)


def reference_forward(
    rows: int, columns: int, x: Array, mean: Array, factor: Array, scale: Array, shift: Array, y: Array
) -> None:
    y[:] = (x.astype(np.float64) - mean) * factor * scale + shift


def reference_scale(
    rows: int, columns: int, dy: Array, x: Array, weight: Array, mean: Array, factor: Array, dscale: Array,
    dshift: Array,
) -> None:
    counts, h = weight > 0, (x.astype(np.float64) - mean) * factor
    dscale[:] = (dy * h)[counts].sum(0)
    dshift[:] = dy[counts].astype(np.float64).sum(0)


def reference_gradient(
    rows: int, columns: int, least: int, dy: Array, x: Array, weight: Array, count: Array, scale: Array, mean: Array,
    factor: Array, dscale: Array, dshift: Array, dx: Array,
) -> None:
    share, h = 1 / count[0] if count[0] >= least else 0, (x.astype(np.float64) - mean) * factor
    way = scale.astype(np.float64) * factor * (dy - share * (dshift + h * dscale))
    dx[:] = np.where(weight[:, None] > 0, way, 0)


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    columns, weight = 1 + n % 70, weights(rng, n)
    counted = float((weight > 0).sum())
    return {
        "rows": n, "columns": columns, "least": 2 + n % 300, "momentum": 0.1, "epsilon": 1e-3, "weight": weight,
        "step": step(weight), "x": rng.normal(1, 2, (n, columns)), "dy": rng.normal(size=(n, columns)),
        "count": [counted], "sum": rng.normal(1, 0.1, columns) * counted,
        "squares": rng.uniform(1, 9, columns) * counted, "running_mean": rng.normal(size=columns),
        "running_variance": rng.uniform(0, 4, columns), "mean": rng.normal(1, 0.1, columns),
        "factor": rng.uniform(0.2, 1, columns), "scale": rng.normal(1, 0.3, columns), "shift": rng.normal(size=columns),
        "dscale": rng.normal(0, 9, columns), "dshift": rng.normal(0, 9, columns),
    }


_SIZES, _BATCH = (size("rows"), size("columns")), (given("x", *_MATRIX), given("weight", *_ROW))
_SAVED = (given("mean", *_COLUMN), given("factor", *_COLUMN))
OPS = (
    Op("batch_norm_sum", (*_SIZES, *_BATCH, out("sum", *_COLUMN), out("count", *_ONE)),
       reference_sum, example, each=("columns",), tiles="sum"),
    Op("batch_norm_squares",
       (*_SIZES, *_BATCH, given("sum", *_COLUMN), given("count", *_ONE), out("squares", *_COLUMN)),
       reference_squares, example, each=("columns",), tiles="sum"),
    Op("batch_norm_settle",
       (size("columns"), size("least"), value("momentum"), value("epsilon"), given("count", *_ONE),
        given("sum", *_COLUMN), given("squares", *_COLUMN), step_changed(), changed("running_mean", *_COLUMN),
        changed("running_variance", *_COLUMN), out("mean", *_COLUMN), out("factor", *_COLUMN)),
       reference_settle, example, each=("columns",)),
    Op("batch_norm_factor",
       (size("columns"), value("epsilon"), given("running_variance", *_COLUMN), out("factor", *_COLUMN)),
       reference_factor, example, each=("columns",)),
    Op("batch_norm_forward",
       (*_SIZES, given("x", *_MATRIX), *_SAVED, given("scale", *_COLUMN), given("shift", *_COLUMN),
        out("y", *_MATRIX)),
       reference_forward, example, rows=("rows",), tiles="rows"),
    Op("batch_norm_grad_scale",
       (*_SIZES, given("dy", *_MATRIX), *_BATCH, *_SAVED, out("dscale", *_COLUMN), out("dshift", *_COLUMN)),
       reference_scale, example, each=("columns",), tiles="sum"),
    Op("batch_norm_gradient",
       (*_SIZES, size("least"), given("dy", *_MATRIX), *_BATCH, given("count", *_ONE),
        given("scale", *_COLUMN), *_SAVED, given("dscale", *_COLUMN), given("dshift", *_COLUMN), out("dx", *_MATRIX)),
       reference_gradient, example, rows=("rows",), tiles="rows"),
)
