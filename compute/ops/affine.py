"""Every number by a factor, and one more on top."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array, Op, given, out, size, value

HELP = "scale x + shift"


def reference(n: int, scale: float, shift: float, y: Array, x: Array) -> None:
    y[:] = np.float64(np.float32(scale)) * x + np.float32(shift)


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {"n": n, "scale": 0.3, "shift": -2.0, "x": rng.normal(0, 3, n)}


OPS = (
    Op("affine", (size("n"), value("scale"), value("shift"), out("y", "f32", "n"), given("x", "f32", "n")),
       reference, example, each=("n",), tiles="rows"),
)
