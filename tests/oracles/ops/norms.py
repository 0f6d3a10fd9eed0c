"""The oracles of norms: of rows, of a batch's columns, of weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops import oracle
from tests.oracles.ops._batch import step, weights


def row_norm_example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    columns, centers = 1 + n % 70, n % 2
    return {
        "rows": n, "columns": columns, "centers": centers, "epsilon": 1e-3, "x": rng.normal(1, 2, (n, columns)),
        "scale": rng.normal(1, 0.3, columns), "shift": rng.normal(size=columns) if centers else None,
        "dy": rng.normal(size=(n, columns)), "mean": rng.normal(1, 0.1, n) * centers, "factor": rng.uniform(0.2, 1, n),
        "dshift": np.zeros(columns) if centers else None,
    }


@oracle(row_norm_example)
def row_norm_forward(
    rows: int, columns: int, centers: int, epsilon: float, x: Array, scale: Array, shift: Array | None, y: Array,
    mean: Array, factor: Array,
) -> None:
    wide = x.astype(np.float64)
    mean[:] = wide.mean(1) if centers else 0
    apart = wide - mean[:, None]
    factor[:] = 1 / np.sqrt((apart**2).mean(1) + epsilon)
    y[:] = apart * factor[:, None] * scale + (0 if shift is None else shift)


@oracle(row_norm_example)
def row_norm_gradient(
    rows: int, columns: int, centers: int, dy: Array, x: Array, scale: Array, mean: Array, factor: Array, dx: Array
) -> None:
    g, h = dy.astype(np.float64) * scale, (x.astype(np.float64) - mean[:, None]) * factor[:, None]
    level = g.mean(1, keepdims=True) if centers else 0
    dx[:] = (g - level - h * (g * h).mean(1, keepdims=True)) * factor[:, None]


@oracle(row_norm_example)
def row_norm_grad_scale(
    rows: int, columns: int, dy: Array, x: Array, mean: Array, factor: Array, dscale: Array, dshift: Array | None
) -> None:
    h = (x.astype(np.float64) - mean[:, None]) * factor[:, None]
    dscale[:] = (dy * h).sum(0)
    if dshift is not None:
        dshift[:] = dy.astype(np.float64).sum(0)


def unit_rows_example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    columns = n % 70
    x = rng.normal(size=(n, columns))
    x[n // 2 : n // 2 + 1] = 0
    return {
        "rows": n, "columns": columns, "x": x, "y": x / 3, "length": rng.uniform(1, 4, n),
        "dy": rng.normal(size=(n, columns)),
    }


@oracle(unit_rows_example)
def unit_rows_forward(rows: int, columns: int, x: Array, y: Array, length: Array) -> None:
    found = np.sqrt((x.astype(np.float64) ** 2).sum(1))
    length[:] = np.where(found > 0, found, 1)
    y[:] = x / length[:, None]


@oracle(unit_rows_example)
def unit_rows_gradient(rows: int, columns: int, dy: Array, y: Array, length: Array, dx: Array) -> None:
    along = (dy.astype(np.float64) * y).sum(1, keepdims=True)
    dx[:] = (dy - y * along) / length[:, None]


def batch_norm_example(rng: np.random.Generator, n: int) -> dict[str, Any]:
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


@oracle(batch_norm_example)
def batch_norm_sum(rows: int, columns: int, x: Array, weight: Array, total: Array, count: Array) -> None:
    total[:] = x[weight > 0].astype(np.float64).sum(0)
    count[:] = (weight > 0).sum()


@oracle(batch_norm_example)
def batch_norm_squares(
    rows: int, columns: int, x: Array, weight: Array, total: Array, count: Array, squares: Array
) -> None:
    mean = total.astype(np.float64) / count[0]
    squares[:] = ((x[weight > 0].astype(np.float64) - mean) ** 2).sum(0)


@oracle(batch_norm_example)
def batch_norm_settle(
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


@oracle(batch_norm_example)
def batch_norm_factor(columns: int, epsilon: float, running_variance: Array, factor: Array) -> None:
    factor[:] = 1 / np.sqrt(running_variance.astype(np.float64) + epsilon)


@oracle(batch_norm_example)
def batch_norm_forward(
    rows: int, columns: int, x: Array, mean: Array, factor: Array, scale: Array, shift: Array, y: Array
) -> None:
    y[:] = (x.astype(np.float64) - mean) * factor * scale + shift


@oracle(batch_norm_example)
def batch_norm_grad_scale(
    rows: int, columns: int, dy: Array, x: Array, weight: Array, mean: Array, factor: Array, dscale: Array,
    dshift: Array,
) -> None:
    counts, h = weight > 0, (x.astype(np.float64) - mean) * factor
    dscale[:] = (dy * h)[counts].sum(0)
    dshift[:] = dy[counts].astype(np.float64).sum(0)


@oracle(batch_norm_example)
def batch_norm_gradient(
    rows: int, columns: int, least: int, dy: Array, x: Array, weight: Array, count: Array, scale: Array, mean: Array,
    factor: Array, dscale: Array, dshift: Array, dx: Array,
) -> None:
    share, h = 1 / count[0] if count[0] >= least else 0, (x.astype(np.float64) - mean) * factor
    way = scale.astype(np.float64) * factor * (dy - share * (dshift + h * dscale))
    dx[:] = np.where(weight[:, None] > 0, way, 0)


def max_norm_example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    outputs = 1 + n % 7
    w = rng.normal(size=(n, outputs)) * rng.choice([0.01, 1], outputs)
    return {"inputs": n, "outputs": outputs, "step": step(), "limit": 0.7, "w": w}


@oracle(max_norm_example)
def max_norm(inputs: int, outputs: int, step: Any, limit: float, w: Array) -> None:
    if step.weight_sum > 0:
        norms = np.sqrt((w.astype(np.float64) ** 2).sum(0))
        w *= np.where(norms > limit, limit / np.where(norms > 0, norms, 1), 1)
