"""The oracle of compute/ops/running_prior.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops import Oracle
from tests.oracles.ops._batch import sums_before, weights


def shares_before(
    smoothing: float, index: Array, weight: Array, base: Array, share: Array, class_weight: Array
) -> Array:
    """Returns the share of each class before each row, [rows, classes]."""
    added = np.zeros((len(index), len(base)))
    added[np.arange(len(index)), index] = np.where(weight > 0, weight, 0)
    counts = (base + share + 0.5 + sums_before(added)) * class_weight.astype(np.float64)
    return np.asarray((1 - smoothing) * counts / counts.sum(1, keepdims=True) + smoothing / len(base))


def odds(
    rows: int, smoothing: float, label: Array, weight: Array, base: Array, share: Array, class_weight: Array,
    seen: Array, z: Array,
) -> None:
    found = shares_before(smoothing, (label >= 0.5).astype(np.int64), weight, base, share, class_weight)
    z[:] = np.log(found[:, 1] / found[:, 0])


def shares(
    rows: int, classes: int, smoothing: float, label: Array, weight: Array, base: Array, share: Array,
    class_weight: Array, seen: Array, z: Array,
) -> None:
    index = np.where((label >= 0) & (label < classes), label, 0)
    z[:] = np.log(shares_before(smoothing, index, weight, base, share, class_weight))


def example_of(rng: np.random.Generator, n: int, classes: int, least: int = 0) -> dict[str, Any]:
    return {
        "rows": n, "classes": classes, "smoothing": 0.1, "label": rng.integers(least, classes - least, n),
        "weight": weights(rng, n), "base": rng.integers(0, 9, classes) * 1.0, "share": np.ones(classes),
        "class_weight": rng.uniform(0.5, 3, classes),
    }


def example_of_two(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return example_of(rng, n, 2)


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return example_of(rng, n, 2 + n % 70, least=-1)


ORACLES = {
    "running_odds": Oracle(odds, example_of_two),
    "running_shares": Oracle(shares, example),
}
