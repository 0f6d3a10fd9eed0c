"""Class probabilities from logits."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array, Op, given, out, size

HELP = "class probabilities, e^z over its sum"


def probabilities(z: Array) -> Array:
    """Row by row, in float64."""
    power = np.exp(z.astype(np.float64) - z.max(1, keepdims=True))
    return np.asarray(power / power.sum(1, keepdims=True))


def reference(rows: int, classes: int, z: Array, p: Array) -> None:
    p[:] = probabilities(z)


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    classes = 2 + n % 70
    return {"rows": n, "classes": classes, "z": rng.normal(0, 5, (n, classes))}


OPS = (
    Op(
        "softmax",
        (size("rows"), size("classes"), given("z", "f32", "rows", "classes"), out("p", "f32", "rows", "classes")),
        reference, example, rows=("rows",), tiles="rows",
    ),
)
