"""The common form of elementwise ops of two arrays: <name>_forward(n, y, a, b), and for some <name>_gradient(n, da,
db, dy, a, b)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from streamtrain.compute.spec import Array, Op, given, out, size

_VECTOR = ("f32", "n")


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """Some of them the same in both."""
    a, b = rng.normal(0, 3, n), rng.normal(0, 3, n)
    return {"n": n, "a": a, "b": np.where(rng.random(n) < 0.1, a, b), "dy": rng.normal(size=n)}


def forward_of(name: str, formula: Callable[[Array, Array], Array]) -> Op:
    def reference(n: int, y: Array, a: Array, b: Array) -> None:
        y[:] = formula(a.astype(np.float64), b.astype(np.float64))

    args = (size("n"), out("y", *_VECTOR), given("a", *_VECTOR), given("b", *_VECTOR))
    return Op(f"{name}_forward", args, reference, example, each=("n",), tiles="rows")


def gradient_of(name: str, slopes: Callable[[Array, Array], tuple[Array, Array]]) -> Op:
    """`slopes`: of y by a and by b."""

    def reference(n: int, da: Array, db: Array, dy: Array, a: Array, b: Array) -> None:
        by_a, by_b = slopes(a.astype(np.float64), b.astype(np.float64))
        da[:], db[:] = dy * by_a, dy * by_b

    args = (size("n"), out("da", *_VECTOR), out("db", *_VECTOR), *(given(each, *_VECTOR) for each in ("dy", "a", "b")))
    return Op(f"{name}_gradient", args, reference, example, each=("n",), tiles="rows")
