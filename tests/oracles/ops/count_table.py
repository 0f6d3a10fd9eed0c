"""The oracle of compute/ops/count_table.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.ops.count_table import FORMS
from streamtrain.compute.spec import Array
from tests.oracles.ops import Oracle
from tests.oracles.ops._batch import weights
from tests.oracles.ops.embedding import bucket


def add(rows: int, columns: int, column: int, cells: int, categories: Array, weight: Array, count: Array) -> None:
    counted = weight > 0
    np.add.at(count, bucket(categories, column, cells - 1)[counted], 1)
    count[-1] += counted.sum()


def value(
    rows: int, columns: int, column: int, cells: int, width: int, at: int, form: int, categories: Array, count: Array,
    x: Array,
) -> None:
    seen = count[bucket(categories, column, cells - 1)].astype(np.float64)
    x[:, at] = (np.log1p(seen), seen / max(int(count[-1]), 1), seen)[form]


def index_of(
    rows: int, columns: int, column: int, cells: int, least: int, categories: Array, count: Array, index: Array
) -> None:
    found = bucket(categories, column, cells - 1)
    index[:] = np.where(count[found] >= least, found, cells - 1)


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    buckets = 1 + n % 50
    count = rng.integers(0, 3, buckets) * rng.integers(0, 1 << 40, buckets)
    return {
        "rows": n, "columns": 3, "column": 1, "cells": buckets + 1, "width": 6, "at": n % 6, "form": n % len(FORMS),
        "least": 1 << 38, "categories": rng.integers(-1, buckets + 1, (n, 3)), "weight": weights(rng, n),
        "count": [*count, count.sum()], "x": np.zeros((n, 6)),
    }


ORACLES = {
    "count_add": Oracle(add, example),
    "count_value": Oracle(value, example),
    "count_index": Oracle(index_of, example),
}
