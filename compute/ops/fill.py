"""The same number everywhere."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array, Op, out, size, value

HELP = "the same number everywhere"


def reference(n: int, number: float, y: Array) -> None:
    y[:] = number


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {"n": n, "value": -0.5}


OPS = (Op("fill", (size("n"), value("value"), out("y", "f32", "n")), reference, example, each=("n",), tiles="rows"),)
