"""The least and the greatest of a column of numbers, and a row's place between them."""

from __future__ import annotations

from streamtrain.compute.spec import Op, changed, given, part, size

HELP = "least and greatest of a column, and where a number lies from one to the other"

BATCH = (size("rows"), size("columns"), size("column"))
NUMBERS = given("numbers", "f64", "rows", "columns")
OPS = (
    Op("extremes_add", (*BATCH, NUMBERS, given("weight", "f32", "rows"), changed("extremes", "f64", 3))),
    Op(
        "extremes_scale",
        (*BATCH, size("width"), size("at"), NUMBERS, given("extremes", "f64", 3), part("x", "f32", "rows", "width")),
        each=("rows",),
    ),
)
