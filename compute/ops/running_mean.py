"""The constant prediction of a number, row by row: the mean label of the rows before each."""

from __future__ import annotations

from streamtrain.compute.spec import Op, given, out, size

HELP = "mean label of the rows before each row, and the score that gives it"

ROWS = ("f32", "rows")
BEFORE = (
    size("rows"), given("label", *ROWS), given("weight", *ROWS), given("base", "f64", 4), given("share", "f64", 4),
)
OPS = (
    Op(
        "running_mean",
        (*BEFORE, given("mean", "f32", 1), given("scale", "f32", 1), out("constant", *ROWS), out("z", *ROWS)),
    ),
    Op("running_rate", (*BEFORE, out("constant", *ROWS), out("z", *ROWS))),
)
