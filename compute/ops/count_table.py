"""Counts of a category's buckets: what a batch adds, and what a row sees of those before."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.ops._batch import weights
from streamtrain.compute.ops.embedding import bucket
from streamtrain.compute.spec import Array, Op, changed, given, out, part, size

HELP = "rows by bucket of a category, as a number of the input matrix or to tell rare ones"
FORMS = ("log", "share", "number")   # what is made of a count
BATCH = (size("rows"), size("columns"), size("column"), size("cells"))
CATEGORIES = given("categories", "i32", "rows", "columns")
COUNT = ("i64", "cells")


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


OPS = (
    Op("count_add", (*BATCH, CATEGORIES, given("weight", "f32", "rows"), changed("count", *COUNT)), add, example,
       each=("rows",)),
    Op(
        "count_value",
        (*BATCH, size("width"), size("at"), size("form"), CATEGORIES, given("count", *COUNT),
         part("x", "f32", "rows", "width")),
        value, example, each=("rows",),
    ),
    Op(
        "count_index",
        (*BATCH, size("least"), CATEGORIES, given("count", *COUNT), out("index", "i32", "rows")),
        index_of, example, each=("rows",),
    ),
)
