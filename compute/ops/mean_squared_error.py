"""Squared error of a number, standardised or not, and the way back to the label's unit."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.ops._batch import share, step, weights
from streamtrain.compute.spec import Array, Op, given, out, size, step_read

HELP = "loss, gradient and prediction of a number"


def reference(
    rows: int, z: Array, label: Array, weight: Array, mean: Array, scale: Array, step: Any, dz: Array, loss: Array,
    p: Array,
) -> None:
    counts = weight > 0
    error = z - (label - mean[0]) * scale[0]
    p[:] = z / scale[0] + mean[0]
    loss[:] = np.where(counts, error * error, 0)
    dz[:] = np.where(counts, 2 * weight * share(step) * error, 0)


def undo(n: int, z: Array, mean: Array, scale: Array, p: Array) -> None:
    p[:] = z / scale[0] + mean[0]


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    weight = weights(rng, n)
    return {
        "rows": n, "n": n, "z": rng.normal(size=n), "label": rng.normal(40, 10, n), "weight": weight, "mean": [41.0],
        "scale": [0.1], "step": step(weight),
    }


ROWS = ("f32", "rows")
OPS = (
    Op(
        "mean_squared_error",
        (size("rows"), given("z", *ROWS), given("label", *ROWS), given("weight", *ROWS), given("mean", "f32", 1),
         given("scale", "f32", 1), step_read(), out("dz", *ROWS), out("loss", *ROWS), out("p", *ROWS)),
        reference, example, each=("rows",), tiles="rows",
    ),
    Op(
        "unstandardize",
        (size("n"), given("z", "f32", "n"), given("mean", "f32", 1), given("scale", "f32", 1), out("p", "f32", "n")),
        undo, example, each=("n",), tiles="rows",
    ),
)
