"""The oracle of compute/ops/moments.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.moments import MOMENTS, named
from streamtrain.compute.spec import Array
from tests.oracles.moments import merge, nearer
from tests.oracles.ops import Oracle
from tests.oracles.ops._batch import weights, with_missing


def reference(
    rows: int, columns: int, numbers: Array, weight: Array, mean: Array, scale: Array, clip: Array, low: Array,
    high: Array, share: Array,
) -> None:
    raw = numbers[weight > 0]
    if not len(raw):
        return
    of, within_bounds, there = named(share), np.clip(raw, low, high), ~np.isnan(raw)
    of["clipped"] += (abs((raw - mean) * scale) > clip).sum(0)
    apart = there & (raw != within_bounds)
    of["outside"] += apart.sum(0)
    distance = np.where(apart, abs(raw.astype(np.float64) - mean), np.inf).min(0)
    of["least"][:] = nearer(np.where(np.isfinite(distance), distance, 0), of["least"])
    merge(raw.astype(np.float64), there, of["count"].copy(), of["raw_mean"], of["raw_squares"])
    merge(within_bounds.astype(np.float64), there, of["count"], of["mean"], of["squares"])


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    columns = n % 41
    share = np.zeros((columns, len(MOMENTS)))
    of = named(share)
    of["count"][:], of["mean"][:], of["squares"][:] = 12, rng.normal(1e3, 1, columns), rng.uniform(0, 50, columns)
    of["raw_mean"][:], of["raw_squares"][:] = of["mean"], 2 * of["squares"]
    numbers = with_missing(rng, rng.normal(1e3, 2, (n, columns)))
    return {
        "rows": n, "columns": columns, "numbers": numbers, "weight": weights(rng, n),
        "mean": np.full(columns, 1e3), "scale": np.full(columns, 0.5),
        "clip": np.where(rng.random(columns) < 0.5, 1.5, np.inf),
        "low": np.where(rng.random(columns) < 0.5, 1e3 - 5, -np.inf),
        "high": np.where(rng.random(columns) < 0.5, 1e3 + 3, np.inf), "share": share,
    }


ORACLES = {
    "moments": Oracle(reference, example, 1e-12),
}
