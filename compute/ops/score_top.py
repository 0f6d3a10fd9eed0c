"""The weight of rows whose label is among the likeliest classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.ops._batch import weights
from streamtrain.compute.spec import Array, Op, changed, given, size

HELP = "weight of the rows whose label is among the likeliest classes"
TOPS = (5, 10, 100)   # how many of them: a prefix of these where there are few classes


def reference(rows: int, count: int, rank: Array, weight: Array, most: Array, top: Array) -> None:
    w = np.maximum(weight, 0).astype(np.float64)
    top += ((rank[:, None] < most) * w[:, None]).sum(0)


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    count = 1 + n % 3
    return {"rows": n, "count": count, "rank": rng.integers(0, 9, n), "weight": weights(rng, n),
            "most": np.array([2, 5, 8])[:count], "top": np.arange(count)}


OPS = (
    Op("score_top",
       (size("rows"), size("count"), given("rank", "i32", "rows"), given("weight", "f32", "rows"),
        given("most", "i32", "count"), changed("top", "f64", "count")),
       reference, example, rows=("count",), tolerance=1e-12),
)
