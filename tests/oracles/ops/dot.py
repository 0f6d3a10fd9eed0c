"""The oracle of compute/ops/dot.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops import Oracle


def reference(rows: int, columns: int, a: Array, b: Array, y: Array) -> None:
    y[:] = (a.astype(np.float64) * b).sum(1)


def reference_gradient(rows: int, columns: int, dy: Array, a: Array, b: Array, da: Array, db: Array) -> None:
    da[:], db[:] = dy[:, None] * b, dy[:, None] * a


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    columns = n % 70
    return {
        "rows": n, "columns": columns, "a": rng.normal(size=(n, columns)), "b": rng.normal(size=(n, columns)),
        "dy": rng.normal(size=n),
    }


ORACLES = {
    "dot_forward": Oracle(reference, example, 1e-5),
    "dot_gradient": Oracle(reference_gradient, example),
}
