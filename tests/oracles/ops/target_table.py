"""The oracle of compute/ops/target_table.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops import Oracle
from tests.oracles.ops._batch import weights
from tests.oracles.ops.embedding import bucket

LEAST_SHARE = 1e-12   # of the mean's square: a variance below it is what rounding leaves


def add(
    rows: int, columns: int, column: int, buckets: int, categories: Array, label: Array, weight: Array, sums: Array
) -> None:
    counted = weight > 0
    w, found = weight[counted].astype(np.float64), bucket(categories, column, buckets)[counted]
    np.add.at(sums, found, np.stack([w, w * label[counted]], -1))


def add_all(rows: int, label: Array, weight: Array, sums: Array) -> None:
    counted = weight > 0
    w, y = weight[counted].astype(np.float64), label[counted].astype(np.float64)
    sums += [w.sum(), (w * y).sum(), (w * y * y).sum()]


def value(
    rows: int, columns: int, column: int, buckets: int, width: int, at: int, categories: Array, sums: Array,
    everything: Array, prior: float, x: Array,
) -> None:
    x[:, at] = 0
    if not everything[0] > 0:
        return
    mean = everything[1] / everything[0]
    variance = everything[2] / everything[0] - mean * mean
    found = sums[bucket(categories, column, buckets)]
    total = found[:, 0] + prior
    if variance > mean * mean * LEAST_SHARE:
        away = np.divide(found[:, 1] - mean * found[:, 0], total, out=np.zeros(rows), where=total > 0)
        x[:, at] = away / np.sqrt(variance)


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    buckets = 1 + n % 50
    weight = rng.integers(0, 3, buckets) * rng.random(buckets) * 30
    sums = np.stack([weight, weight * rng.random(buckets)], -1)
    everything = [weight.sum(), sums[:, 1].sum(), sums[:, 1].sum()]
    return {
        "rows": n, "columns": 3, "column": 1, "buckets": buckets, "width": 6, "at": n % 6, "prior": 3.0 * (n % 2),
        "categories": rng.integers(-1, buckets + 1, (n, 3)), "weight": weights(rng, n), "sums": sums,
        "everything": everything, "label": rng.integers(0, 2, n), "x": np.zeros((n, 6)),
    }


def example_of_all(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {**example(rng, n), "sums": [3.0, 2.0, 1.5]}


ORACLES = {
    "target_add": Oracle(add, example, 1e-12),
    "target_add_all": Oracle(add_all, example_of_all, 1e-12),
    "target_value": Oracle(value, example),
}
