"""Squared error of a number, standardised or not, and the way back to the label's unit."""

from __future__ import annotations

from streamtrain.compute.ops._number import number_op
from streamtrain.compute.spec import Op, given, out, size

HELP = "loss, gradient and prediction of a number"
VALUES = ("f32", "n")

OPS = (
    number_op("mean_squared_error"),
    Op(
        "unstandardize",
        (size("n"), given("z", *VALUES), given("mean", "f32", 1), given("scale", "f32", 1), out("p", *VALUES)),
        each=("n",), tiles="rows",
    ),
)
