"""The oracles of standardized columns: their moments, scales and values."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.moments import MOMENTS, named
from streamtrain.compute.spec import Array
from tests.oracles.moments import deviation, merge, nearer, reach
from tests.oracles.moments import example as example_moments
from tests.oracles.ops import oracle
from tests.oracles.ops._batch import weights, with_missing


def moments_example(rng: np.random.Generator, n: int) -> dict[str, Any]:
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


@oracle(moments_example, 1e-12)
def moments(
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


def standardize_example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    columns = n % 40
    numbers = with_missing(rng, rng.normal(5, 2, (n, columns)))
    return {
        "rows": n, "columns": columns, "width": columns + 3, "at": n % 4, "numbers": numbers,
        "mean": rng.normal(5, 2, columns), "scale": rng.uniform(0.1, 2, columns),
        "clip": np.where(rng.random(columns) < 0.5, 1.0, np.inf), "x": np.zeros((n, columns + 3)),
    }


@oracle(standardize_example)
def standardize(
    rows: int, columns: int, width: int, at: int, numbers: Array, mean: Array, scale: Array, clip: Array, x: Array
) -> None:
    z = np.clip((numbers - mean) * scale, -clip, clip)   # rounded to float32 last
    x[:, at : at + columns] = np.where(np.isnan(numbers), 0, z)


def standardize_scale_example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {"columns": n, "moments": example_moments(rng, n), "chosen": rng.integers(0, 2, n)}


@oracle(standardize_scale_example)
def standardize_scale(
    columns: int, moments: Array, chosen: Array, mean: Array, scale: Array, clip: Array, low: Array, high: Array
) -> None:
    of, spread = named(moments), deviation(moments)
    known, varies = (chosen != 0) & (of["count"] > 0), (spread > 0) & (spread >= of["floor"])
    away = np.where(known, reach(moments), np.inf)
    mean[:] = np.where(known, of["mean"], 0)
    scale[:] = np.divide(1, spread, out=np.ones_like(spread), where=known & varies)
    clip[:] = np.where(known & (of["clip"] > 0), of["clip"], np.inf)
    low[:], high[:] = of["mean"] - away, of["mean"] + away
