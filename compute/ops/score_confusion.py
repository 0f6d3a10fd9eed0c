"""Which class was taken for which."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.ops._batch import weights
from streamtrain.compute.spec import Array, Op, changed, given, out, size

HELP = "weight of the rows of each class by the class that is the likeliest"
MOST_CLASSES = 64   # whose confusion is told: 32 kB of a state


def reference_pair(
    rows: int, classes: int, p: Array, rank: Array, label: Array, weight: Array, pair: Array
) -> None:
    index = np.where((label >= 0) & (label < classes), label, 0)
    pair[:] = np.where(weight > 0, index * classes + np.where(rank == 0, index, p.argmax(1)), -1)


def reference(rows: int, cells: int, pair: Array, weight: Array, confusion: Array) -> None:
    found = (pair >= 0) & (pair < cells)
    np.add.at(confusion, pair[found], weight[found].astype(np.float64))


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    classes, weight = 2 + n % 9, weights(rng, n)
    pair = np.where(weight > 0, rng.integers(0, classes**2, n), -1)
    return {
        "rows": n, "classes": classes, "cells": classes**2, "p": rng.integers(0, 5, (n, classes)),   # some are equal
        "rank": rng.integers(0, 2, n), "label": rng.integers(-1, classes + 1, n), "weight": weight, "pair": pair,
        "confusion": rng.integers(0, 9, classes**2),
    }


_WEIGHT = given("weight", "f32", "rows")
OPS = (
    Op("class_pair",
       (size("rows"), size("classes"), given("p", "f32", "rows", "classes"), given("rank", "i32", "rows"),
        given("label", "i32", "rows"), _WEIGHT, out("pair", "i32", "rows")),
       reference_pair, example, each=("rows",), tiles="rows"),
    Op("score_confusion",
       (size("rows"), size("cells"), given("pair", "i32", "rows"), _WEIGHT, changed("confusion", "f64", "cells")),
       reference, example, each=("cells",), tolerance=1e-12),
)
