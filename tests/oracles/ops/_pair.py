"""The common oracles of elementwise ops of two arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops import Oracle


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """Some of them the same in both."""
    a, b = rng.normal(0, 3, n), rng.normal(0, 3, n)
    return {"n": n, "a": a, "b": np.where(rng.random(n) < 0.1, a, b), "dy": rng.normal(size=n)}


def forward_of(formula: Callable[[Array, Array], Array]) -> Oracle:
    def reference(n: int, y: Array, a: Array, b: Array) -> None:
        y[:] = formula(a.astype(np.float64), b.astype(np.float64))

    return Oracle(reference, example)


def gradient_of(slopes: Callable[[Array, Array], tuple[Array, Array]]) -> Oracle:
    """`slopes`: of y by a and by b."""

    def reference(n: int, da: Array, db: Array, dy: Array, a: Array, b: Array) -> None:
        by_a, by_b = slopes(a.astype(np.float64), b.astype(np.float64))
        da[:], db[:] = dy * by_a, dy * by_b

    return Oracle(reference, example)
