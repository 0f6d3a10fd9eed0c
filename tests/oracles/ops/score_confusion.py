"""The oracle of compute/ops/score_confusion.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops import Oracle
from tests.oracles.ops._batch import weights


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


ORACLES = {
    "class_pair": Oracle(reference_pair, example),
    "score_confusion": Oracle(reference, example, 1e-12),
}
