"""The oracles of ops of two arrays: elementwise, and row by row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops import Oracle, enter, oracle


def pair_example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """Some of them the same in both."""
    a, b = rng.normal(0, 3, n), rng.normal(0, 3, n)
    return {"n": n, "a": a, "b": np.where(rng.random(n) < 0.1, a, b), "dy": rng.normal(size=n)}


def forward(name: str, formula: Callable[[Array, Array], Array]) -> None:
    def reference(n: int, y: Array, a: Array, b: Array) -> None:
        y[:] = formula(a.astype(np.float64), b.astype(np.float64))

    enter(f"{name}_forward", Oracle(reference, pair_example))


def gradient(name: str, slopes: Callable[[Array, Array], tuple[Array, Array]]) -> None:
    """`slopes`: of y by a and by b."""

    def reference(n: int, da: Array, db: Array, dy: Array, a: Array, b: Array) -> None:
        by_a, by_b = slopes(a.astype(np.float64), b.astype(np.float64))
        da[:], db[:] = dy * by_a, dy * by_b

    enter(f"{name}_gradient", Oracle(reference, pair_example))


forward("add", lambda a, b: a + b)
forward("subtract", lambda a, b: a - b)
forward("multiply", lambda a, b: a * b)
gradient("multiply", lambda a, b: (b, a))
forward("maximum", np.maximum)
gradient("maximum", lambda a, b: (b <= a, b > a))


def rows_example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    columns = n % 70
    return {
        "rows": n, "columns": columns, "a": rng.normal(size=(n, columns)), "b": rng.normal(size=(n, columns)),
        "dy": rng.normal(size=n),
    }


def distance_example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {**rows_example(rng, n), "y": np.where(rng.random(n) < 0.1, 0, rng.uniform(1, 3, n))}


@oracle(rows_example, 1e-5)
def dot_forward(rows: int, columns: int, a: Array, b: Array, y: Array) -> None:
    y[:] = (a.astype(np.float64) * b).sum(1)


@oracle(rows_example)
def dot_gradient(rows: int, columns: int, dy: Array, a: Array, b: Array, da: Array, db: Array) -> None:
    da[:], db[:] = dy[:, None] * b, dy[:, None] * a


@oracle(distance_example)
def distance_forward(rows: int, columns: int, a: Array, b: Array, y: Array) -> None:
    y[:] = np.sqrt(((a.astype(np.float64) - b) ** 2).sum(1))


@oracle(distance_example)
def distance_gradient(rows: int, columns: int, dy: Array, y: Array, a: Array, b: Array, da: Array, db: Array) -> None:
    share = np.where(y > 0, dy / np.where(y > 0, y, 1), 0)[:, None]
    da[:] = share * (a.astype(np.float64) - b)
    db[:] = -share * (a.astype(np.float64) - b)
