"""The oracles of transforms that keep a state of a column."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.ops.count_table import FORMS
from streamtrain.compute.spec import Array
from tests.oracles.ops import oracle
from tests.oracles.ops._batch import weights
from tests.oracles.ops.embedding import bucket


def extremes_example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {
        "rows": n, "columns": 3, "column": 1, "width": 6, "at": n % 6, "numbers": rng.normal(1, 3, (n, 3)),
        "weight": weights(rng, n), "extremes": [n % 3, -0.5 * (n % 3), 2.0 * (n % 3)], "x": np.zeros((n, 6)),
    }


@oracle(extremes_example, 1e-12)
def extremes_add(rows: int, columns: int, column: int, numbers: Array, weight: Array, extremes: Array) -> None:
    values = numbers[weight > 0, column]
    if len(values):
        before = extremes[1:] if extremes[0] > 0 else [values[0], values[0]]
        extremes[1:] = min(before[0], values.min()), max(before[1], values.max())
        extremes[0] += len(values)


@oracle(extremes_example)
def extremes_scale(
    rows: int, columns: int, column: int, width: int, at: int, numbers: Array, extremes: Array, x: Array
) -> None:
    _, least, greatest = extremes
    scale = 1 / (greatest - least) if greatest > least else 0.0
    x[:, at] = np.clip((numbers[:, column] - least) * scale, 0, 1)


def count_table_example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    buckets = 1 + n % 50
    count = rng.integers(0, 3, buckets) * rng.integers(0, 1 << 40, buckets)
    return {
        "rows": n, "columns": 3, "column": 1, "cells": buckets + 1, "width": 6, "at": n % 6, "form": n % len(FORMS),
        "least": 1 << 38, "categories": rng.integers(-1, buckets + 1, (n, 3)), "weight": weights(rng, n),
        "count": [*count, count.sum()], "x": np.zeros((n, 6)),
    }


@oracle(count_table_example)
def count_add(rows: int, columns: int, column: int, cells: int, categories: Array, weight: Array, count: Array) -> None:
    counted = weight > 0
    np.add.at(count, bucket(categories, column, cells - 1)[counted], 1)
    count[-1] += counted.sum()


@oracle(count_table_example)
def count_value(
    rows: int, columns: int, column: int, cells: int, width: int, at: int, form: int, categories: Array, count: Array,
    x: Array,
) -> None:
    seen = count[bucket(categories, column, cells - 1)].astype(np.float64)
    x[:, at] = (np.log1p(seen), seen / max(int(count[-1]), 1), seen)[form]


@oracle(count_table_example)
def count_index(
    rows: int, columns: int, column: int, cells: int, least: int, categories: Array, count: Array, index: Array
) -> None:
    found = bucket(categories, column, cells - 1)
    index[:] = np.where(count[found] >= least, found, cells - 1)


LEAST_SHARE = 1e-12   # of the mean's square: a variance below it is what rounding leaves


def target_table_example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    buckets = 1 + n % 50
    weight = rng.integers(0, 3, buckets) * rng.random(buckets) * 30
    sums = np.stack([weight, weight * rng.random(buckets)], -1)
    everything = [weight.sum(), sums[:, 1].sum(), sums[:, 1].sum()]
    return {
        "rows": n, "columns": 3, "column": 1, "buckets": buckets, "width": 6, "at": n % 6, "prior": 3.0 * (n % 2),
        "categories": rng.integers(-1, buckets + 1, (n, 3)), "weight": weights(rng, n), "sums": sums,
        "everything": everything, "label": rng.integers(0, 2, n), "x": np.zeros((n, 6)),
    }


def target_table_example_of_all(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {**target_table_example(rng, n), "sums": [3.0, 2.0, 1.5]}


@oracle(target_table_example, 1e-12)
def target_add(
    rows: int, columns: int, column: int, buckets: int, categories: Array, label: Array, weight: Array, sums: Array
) -> None:
    counted = weight > 0
    w, found = weight[counted].astype(np.float64), bucket(categories, column, buckets)[counted]
    np.add.at(sums, found, np.stack([w, w * label[counted]], -1))


@oracle(target_table_example_of_all, 1e-12)
def target_add_all(rows: int, label: Array, weight: Array, sums: Array) -> None:
    counted = weight > 0
    w, y = weight[counted].astype(np.float64), label[counted].astype(np.float64)
    sums += [w.sum(), (w * y).sum(), (w * y * y).sum()]


@oracle(target_table_example)
def target_value(
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


LN_2, FORGOTTEN = float(np.log(2)), 1000


def decayed_example(rng: np.random.Generator, n: int) -> dict[str, Any]:
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


def decayed_example_of_value(rng: np.random.Generator, n: int) -> dict[str, Any]:
    found = decayed_example(rng, n)
    table = np.concatenate([[[3, 3.4]], rng.normal(5, 4, (5, 2))]) * (n % 7 > 0)
    return {**found, "cells": 6, "width": 2, "table": table, "categories": rng.integers(-1, 5, (n, 3))}


def decayed_example_of_scale(rng: np.random.Generator, n: int) -> dict[str, Any]:
    count = float(n % 3)
    table = [[1, 1.2, 0], [count, 2 * count, count * (4 + n % 2)]]
    return {**decayed_example(rng, n), "table": table, "numbers": rng.normal(1, 2, (n, 3))}


@oracle(decayed_example, 1e-12)
def decayed_add(
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


@oracle(decayed_example_of_value)
def decayed_value(
    rows: int, columns: int, column: int, cells: int, width: int, part: int, y_width: int, at: int, form: int,
    categories: Array, table: Array, y: Array,
) -> None:
    now = np.exp((table[0, 0] - table[0, 1]) * LN_2)
    s, everything = table[1 + bucket(categories, column, cells - 2), part] * now, table[cells - 1, part] * now
    share = s / everything if everything > 0 else np.zeros(rows)
    y[:, at] = (np.copysign(np.log1p(abs(s)), s), share, s)[form]


@oracle(decayed_example_of_scale)
def decayed_scale(
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
