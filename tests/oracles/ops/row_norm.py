"""The oracle of compute/ops/row_norm.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops import Oracle


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


ORACLES = {
    "row_norm_forward": Oracle(reference, example),
    "row_norm_gradient": Oracle(reference_gradient, example),
    "row_norm_grad_scale": Oracle(reference_scale, example),
}
