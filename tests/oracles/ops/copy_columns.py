"""The oracle of compute/ops/copy_columns.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops import Oracle


def reference(rows: int, count: int, given_width: int, first: int, width: int, at: int, x: Array, y: Array) -> None:
    y[:, at : at + count] = x[:, first : first + count]


def add(rows: int, count: int, given_width: int, first: int, width: int, at: int, x: Array, y: Array) -> None:
    y[:, at : at + count] += x[:, first : first + count]


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    count = n % 40
    return {
        "rows": n, "count": count, "given_width": count + 2, "from": n % 3, "width": count + 3, "at": n % 4,
        "x": rng.normal(size=(n, count + 2)), "y": rng.normal(size=(n, count + 3)),
    }


ORACLES = {
    "copy_columns": Oracle(reference, example),
    "add_columns": Oracle(add, example),
}
