"""The oracle of compute/ops/decayed.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops import Oracle
from tests.oracles.ops._batch import weights
from tests.oracles.ops.embedding import bucket

LN_2, FORGOTTEN = float(np.log(2)), 1000


def add(
    rows: int, columns: int, column: int, cells: int, width: int, x_columns: int, x_column: int, t_columns: int,
    t_column: int, categories: Array | None, numbers: Array | None, times: Array | None, weight: Array,
    half_life_ms: float, table: Array,
) -> None:
    found = np.zeros(rows, np.int64) if categories is None else bucket(categories, column, cells - 2)
    latest = _latest(times[:rows, t_column], weight[:rows], half_life_ms) if times is not None else 0
    for row in range(rows):
        time = min(int(times[row, t_column]), latest) if half_life_ms > 0 and times is not None else 0
        if not weight[row] > 0 or time < 0:
            continue
        position = time / half_life_ms + 1 if half_life_ms > 0 else 1.0
        epochs = int(position) - table[0, 0]
        if epochs > 0:
            table[1:] *= 0 if epochs > FORGOTTEN else 2.0**-epochs
            table[0, 0] = int(position)
        table[0, 1] = max(table[0, 1], position)
        x = 1.0 if numbers is None else float(numbers[row, x_column])
        term = np.exp((position - table[0, 0]) * LN_2) * x ** np.arange(width)
        table[1 + found[row]] += term
        if categories is not None:
            table[cells - 1] += term


def _latest(times: Array, weight: Array, half_life_ms: float) -> int:
    """Returns the newest time of a batch's rows, or its fence where that is earlier; native/kernels/decayed.h says
    why."""
    counted: list[int] = sorted(times[(weight > 0) & (times >= 0)].tolist())
    if not counted or counted[-1] - counted[0] <= half_life_ms:
        return counted[-1] if counted else 0
    middle, lower = (counted[(len(counted) + part) // (part + 1) - 1] for part in (1, 3))
    beyond = max(4.0 * (middle - lower), half_life_ms)
    return middle + int(beyond) if counted[-1] - middle > beyond else counted[-1]


def value(
    rows: int, columns: int, column: int, cells: int, width: int, part: int, y_width: int, at: int, form: int,
    categories: Array, table: Array, y: Array,
) -> None:
    now = np.exp((table[0, 0] - table[0, 1]) * LN_2)
    s, everything = table[1 + bucket(categories, column, cells - 2), part] * now, table[cells - 1, part] * now
    share = s / everything if everything > 0 else np.zeros(rows)
    y[:, at] = (np.copysign(np.log1p(abs(s)), s), share, s)[form]


def scaled(
    rows: int, columns: int, column: int, y_width: int, at: int, numbers: Array, table: Array, clip: float, y: Array
) -> None:
    count, total, squares = table[1]
    if not count > 0:
        y[:, at] = 0
        return
    mean = total / count
    variance = squares / count - mean * mean
    scale = 1 / np.sqrt(variance) if variance > max(mean * mean * 1e-12, 1e-60) else 1.0
    y[:, at] = np.clip((numbers[:, column] - mean) * scale, -clip, clip)


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    keyed, half_life_ms = n % 3 > 0, 0.0 if n % 2 else 1000.0
    cells = 6 if keyed else 2
    width = 2 + n % 2
    epoch = 3 if n % 4 else 0
    table = np.zeros((cells, width))
    table[0, :2] = epoch, epoch + (0.4 if epoch else 0)
    table[1:] = rng.random((cells - 1, width)) * epoch
    times = rng.integers(-200, 9000, (n, 2))
    times[: n // 8] *= 10**6   # beyond the fence
    return {
        "rows": n, "columns": 3, "column": 1, "cells": cells, "width": width, "x_columns": 2, "x_column": 1,
        "t_columns": 2, "t_column": 0, "part": 1, "y_width": 6, "at": n % 6, "form": n % 3, "clip": 2.0,
        "categories": rng.integers(-1, 5, (n, 3)) if keyed else None,
        "numbers": rng.normal(1, 2, (n, 2)) if n % 5 else None, "times": times,
        "half_life_ms": half_life_ms, "weight": weights(rng, n), "table": table, "y": np.zeros((n, 6)),
    }


def example_of_value(rng: np.random.Generator, n: int) -> dict[str, Any]:
    found = example(rng, n)
    table = np.concatenate([[[3, 3.4]], rng.normal(5, 4, (5, 2))]) * (n % 7 > 0)
    return {**found, "cells": 6, "width": 2, "table": table, "categories": rng.integers(-1, 5, (n, 3))}


def example_of_scale(rng: np.random.Generator, n: int) -> dict[str, Any]:
    count = float(n % 3)
    table = [[1, 1.2, 0], [count, 2 * count, count * (4 + n % 2)]]
    return {**example(rng, n), "table": table, "numbers": rng.normal(1, 2, (n, 3))}


ORACLES = {
    "decayed_add": Oracle(add, example, 1e-12),
    "decayed_value": Oracle(value, example_of_value),
    "decayed_scale": Oracle(scaled, example_of_scale),
}
