"""The oracle of compute/ops/batch_norm.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops import Oracle
from tests.oracles.ops._batch import step, weights


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


ORACLES = {
    "batch_norm_sum": Oracle(reference_sum, example),
    "batch_norm_squares": Oracle(reference_squares, example),
    "batch_norm_settle": Oracle(reference_settle, example),
    "batch_norm_factor": Oracle(reference_factor, example),
    "batch_norm_forward": Oracle(reference_forward, example),
    "batch_norm_grad_scale": Oracle(reference_scale, example),
    "batch_norm_gradient": Oracle(reference_gradient, example),
}
