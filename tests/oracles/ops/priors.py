"""The oracles of constant predictions: before a batch, and before each of its rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops import oracle
from tests.oracles.ops._batch import sums_before, weights


def class_prior_example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    classes = 2 + n % 70
    outputs = 1 if n % 3 == 0 else classes
    return {
        "rows": n, "outputs": outputs, "classes": 2 if outputs == 1 else classes,
        "seen": rng.integers(0, 1000, 2 if outputs == 1 else classes) * 1.0, "offset": rng.normal(size=outputs),
        "z": rng.normal(size=(n, outputs)),
    }


@oracle(class_prior_example)
def class_prior(outputs: int, classes: int, seen: Array, offset: Array) -> None:
    counts = seen + 0.5
    offset[:] = np.log(counts[1] / counts[0]) if outputs == 1 else np.log(counts / counts.sum())


@oracle(class_prior_example)
def add_offset(rows: int, outputs: int, offset: Array, z: Array) -> None:
    z += offset


def smoothed_prior_example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    classes = 2 if n % 3 == 0 else 2 + n % 70
    outputs = 1 if n % 3 == 0 else classes
    return {
        "outputs": outputs, "classes": classes, "smoothing": 0.1,
        "seen": rng.integers(0, 1000, classes) * 1.0, "class_weight": rng.uniform(0.5, 3, classes),
    }


@oracle(smoothed_prior_example)
def smoothed_prior(
    outputs: int, classes: int, smoothing: float, seen: Array, class_weight: Array, offset: Array
) -> None:
    counts = (seen + 0.5) * class_weight
    share = (1 - smoothing) * counts / counts.sum() + smoothing / classes
    offset[:] = np.log(share[1] / share[0]) if outputs == 1 else np.log(share)


def shares_before(
    smoothing: float, index: Array, weight: Array, base: Array, share: Array, class_weight: Array
) -> Array:
    """Returns the share of each class before each row, [rows, classes]."""
    added = np.zeros((len(index), len(base)))
    added[np.arange(len(index)), index] = np.where(weight > 0, weight, 0)
    counts = (base + share + 0.5 + sums_before(added)) * class_weight.astype(np.float64)
    return np.asarray((1 - smoothing) * counts / counts.sum(1, keepdims=True) + smoothing / len(base))


def running_prior_example_of(rng: np.random.Generator, n: int, classes: int, least: int = 0) -> dict[str, Any]:
    return {
        "rows": n, "classes": classes, "smoothing": 0.1, "label": rng.integers(least, classes - least, n),
        "weight": weights(rng, n), "base": rng.integers(0, 9, classes) * 1.0, "share": np.ones(classes),
        "class_weight": rng.uniform(0.5, 3, classes),
    }


def running_prior_example_of_two(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return running_prior_example_of(rng, n, 2)


def running_prior_example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return running_prior_example_of(rng, n, 2 + n % 70, least=-1)


@oracle(running_prior_example_of_two)
def running_odds(
    rows: int, smoothing: float, label: Array, weight: Array, base: Array, share: Array, class_weight: Array,
    seen: Array, z: Array,
) -> None:
    found = shares_before(smoothing, (label >= 0.5).astype(np.int64), weight, base, share, class_weight)
    z[:] = np.log(found[:, 1] / found[:, 0])


@oracle(running_prior_example)
def running_shares(
    rows: int, classes: int, smoothing: float, label: Array, weight: Array, base: Array, share: Array,
    class_weight: Array, seen: Array, z: Array,
) -> None:
    index = np.where((label >= 0) & (label < classes), label, 0)
    z[:] = np.log(shares_before(smoothing, index, weight, base, share, class_weight))


def before(label: Array, weight: Array, base: Array, share: Array) -> tuple[Array, Array]:
    """Weight and weighted label, each [rows], of the rows before each."""
    counts = weight > 0
    w, wy = (np.where(counts, added, 0).astype(np.float64) for added in (weight, weight.astype(np.float64) * label))
    return base[1] + share[1] + sums_before(w), base[3] + share[3] + sums_before(wy)


def running_mean_example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {
        "rows": n, "label": rng.poisson(9, n), "weight": weights(rng, n), "base": [1.0, 100.0 * (n % 2), 1.0, 300.0],
        "share": [1.0, 20.0 * (n % 2), 3.0, 70.0], "mean": [3.0], "scale": [0.5],
    }


@oracle(running_mean_example)
def running_mean(
    rows: int, label: Array, weight: Array, base: Array, share: Array, mean: Array, scale: Array, constant: Array,
    z: Array,
) -> None:
    seen, labels = before(label, weight, base, share)
    constant[:] = np.where(seen > 0, labels / np.where(seen > 0, seen, 1), label)
    z[:] = (constant - mean[0]) * scale[0]


@oracle(running_mean_example)
def running_rate(
    rows: int, label: Array, weight: Array, base: Array, share: Array, constant: Array, z: Array
) -> None:
    seen, labels = before(label, weight, base, share)
    constant[:] = (labels + 0.5) / (seen + 0.5)
    z[:] = np.log((labels + 0.5) / (seen + 0.5))
