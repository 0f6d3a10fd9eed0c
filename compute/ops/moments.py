"""Count, mean and squared deviations of columns, merged into a worker's share."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.ops._batch import weights
from streamtrain.compute.spec import Array, Op, changed, given, size

HELP = "count, mean and sum of squared deviations of columns, merged into a share"


def reference(rows: int, columns: int, x: Array, weight: Array, share: Array) -> None:
    kept = x[weight > 0].astype(np.float64)
    count = len(kept)
    if count == 0:
        return
    mean = kept.mean(0)
    before, total = share[:, 0].copy(), share[:, 0] + count
    delta = mean - share[:, 1]
    share[:, 2] += ((kept - mean) ** 2).sum(0) + delta**2 * before * count / total
    share[:, 1] += delta * count / total
    share[:, 0] = total


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    columns = n % 41
    share = np.stack([np.full(columns, 12.0), rng.normal(1e3, 1, columns), rng.uniform(0, 50, columns)], 1)
    return {
        "rows": n, "columns": columns, "x": rng.normal(1e3, 2, (n, columns)), "weight": weights(rng, n), "share": share,
    }


OPS = (
    Op(
        "moments",
        (size("rows"), size("columns"), given("x", "f32", "rows", "columns"), given("weight", "f32", "rows"),
         changed("share", "f64", "columns", 3)),
        reference, example, each=("columns",), tolerance=1e-12,
    ),
)
