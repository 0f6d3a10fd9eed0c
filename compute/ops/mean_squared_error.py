"""Squared error of a number, standardised or not, and the way back to the label's unit."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.ops._number import number_op
from streamtrain.compute.spec import Array, Op, given, out, size

HELP = "loss, gradient and prediction of a number"
VALUES = ("f32", "n")


def at(error: Array) -> tuple[Array, Array]:
    return error * error, 2 * error


def undo(n: int, z: Array, mean: Array, scale: Array, p: Array) -> None:
    p[:] = z / scale[0] + mean[0]


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {"n": n, "z": rng.normal(size=n), "mean": [41.0], "scale": [0.1]}


OPS = (
    number_op("mean_squared_error", at),
    Op(
        "unstandardize",
        (size("n"), given("z", *VALUES), given("mean", "f32", 1), given("scale", "f32", 1), out("p", *VALUES)),
        undo, example, each=("n",), tiles="rows",
    ),
)
