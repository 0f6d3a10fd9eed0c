"""The oracle of native/base/moments.h."""

from __future__ import annotations

import numpy as np

from streamtrain.compute.moments import LEAST_DEVIATION, MOMENTS, named
from streamtrain.compute.spec import Array

DOUBLE_SPACING = 2.0**-52


def deviation(moments: Array) -> Array:
    """The standard deviations; 0 where nothing was seen or float64 cannot tell the values apart."""
    of = named(moments)
    found = np.sqrt(of["squares"] / np.maximum(of["count"], 1e-300))
    return np.where((found < LEAST_DEVIATION) | (found < abs(of["mean"]) * DOUBLE_SPACING), 0.0, found)


def reach(moments: Array) -> Array:
    """Returns the distance from the mean up to which a value enters the mean and variance unchanged.

    It is infinite where values are not limited.
    """
    of, found = named(moments), deviation(moments)
    near = np.where(found > 0, of["clip"] * found, of["least"]) * np.sqrt(1 + of["outside"])
    return np.where((of["clip"] > 0) & (of["count"] > 0), near, np.inf)


def nearer(a: Array, b: Array) -> Array:
    """The lesser distance; 0: none."""
    return np.where((a > 0) & ((b <= 0) | (a < b)), a, b)


def merge(values: Array, there: Array, count: Array, mean: Array, squares: Array) -> None:
    """Values [rows, columns] that are there, into count, mean and squares, in place."""
    added = there.sum(0)
    total, least = count + added, np.maximum(added, 1)
    fresh = np.where(there, values, 0).sum(0) / least
    delta = np.where(added > 0, fresh - mean, 0)
    squares += np.where(there, (values - fresh) ** 2, 0).sum(0) + delta**2 * count * added / np.maximum(total, 1)
    mean += delta * added / np.maximum(total, 1)
    count[:] = total


def example(rng: np.random.Generator, columns: int) -> Array:
    """Moments of a lineage under way: columns of which nothing was seen, that hardly varied, without a clip."""
    block = np.zeros((columns, len(MOMENTS)))
    of = named(block)
    of["count"][:] = rng.integers(0, 3, columns) * 10.0
    of["mean"][:] = rng.normal(0, 100, columns)
    of["squares"][:] = rng.integers(0, 3, columns) * rng.random(columns) * 500
    of["floor"][:] = rng.integers(0, 2, columns) * 5.0
    of["clip"][:] = np.where(rng.random(columns) < 0.2, 0, 2.0)
    of["outside"][:], of["least"][:] = rng.integers(0, 4, columns), rng.integers(0, 2, columns) * rng.random(columns)
    return block
