"""Binary cross entropy with class weights and label smoothing, from the plain one."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.ops._batch import share, step, weights
from streamtrain.compute.spec import Array, Op, given, out, size, step_read, value

HELP = "loss and gradient of a binary label with class weights and label smoothing"


def reference(
    rows: int, smoothing: float, z: Array, p: Array, plain: Array, label: Array, weight: Array, class_weight: Array,
    step: Any, dz: Array, loss: Array,
) -> None:
    counts, factor = weight > 0, class_weight[(label >= 0.5).astype(np.int64)].astype(np.float64)
    moved = smoothing * (label - 0.5)
    loss[:] = np.where(counts, factor * (plain + z.astype(np.float64) * moved), 0)
    dz[:] = np.where(counts, weight * share(step) * factor * (p - (label - moved)), 0)


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    weight = weights(rng, n)
    return {
        "rows": n, "smoothing": 0.1, "z": rng.normal(0, 3, n), "p": rng.random(n), "plain": rng.random(n),
        "label": rng.integers(0, 2, n), "weight": weight, "class_weight": [0.5, 3.0], "step": step(weight),
    }


ROWS = ("f32", "rows")
OPS = (
    Op(
        "binary_objective",
        (size("rows"), value("smoothing"), given("z", *ROWS), given("p", *ROWS), given("plain", *ROWS),
         given("label", *ROWS), given("weight", *ROWS), given("class_weight", "f32", 2), step_read(),
         out("dz", *ROWS), out("loss", *ROWS)),
        reference, example, each=("rows",), tiles="rows",
    ),
)
