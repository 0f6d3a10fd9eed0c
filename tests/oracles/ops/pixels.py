"""The oracle of compute/ops/pixels.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops import Oracle


def reference(rows: int, columns: int, width: int, at: int, pixels: Array, x: Array) -> None:
    x[:, at : at + columns] = pixels.astype(x.dtype) / 255 - 0.5


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    columns = n % 40
    return {
        "rows": n, "columns": columns, "width": columns + 3, "at": n % 4,
        "pixels": rng.integers(0, 256, (n, columns)), "x": np.zeros((n, columns + 3)),
    }


ORACLES = {
    "pixels": Oracle(reference, example),
}
