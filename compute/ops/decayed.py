"""Sums that halve over a half-life of event time: what a batch adds, and what a row sees of those before."""

from __future__ import annotations

from streamtrain.compute.spec import Op, changed, given, part, size
from streamtrain.compute.spec import value as plain

HELP = "counts, sums and moments that forget by event time"
POWERS = 3   # of moments: x^0, x^1, x^2

CATEGORIES = size("columns"), size("column"), size("cells"), size("width")
TABLE = ("f64", "cells", "width")   # of cells the first is no sum
OPS = (
    Op(
        "decayed_add",
        (size("rows"), *CATEGORIES, size("x_columns"), size("x_column"), size("t_columns"), size("t_column"),
         given("categories", "i32", "rows", "columns", optional=True),
         given("numbers", "f64", "rows", "x_columns", optional=True),
         given("times", "i64", "rows", "t_columns", optional=True), given("weight", "f32", "rows"),
         plain("half_life_ms", "f64"), changed("table", *TABLE)),
    ),
    Op(
        "decayed_value",
        (size("rows"), *CATEGORIES, size("part"), size("y_width"), size("at"), size("form"),
         given("categories", "i32", "rows", "columns"), given("table", *TABLE), part("y", "f32", "rows", "y_width")),
        each=("rows",),
    ),
    Op(
        "decayed_scale",
        (size("rows"), size("columns"), size("column"), size("y_width"), size("at"),
         given("numbers", "f64", "rows", "columns"), given("table", "f64", 2, POWERS), plain("clip", "f64"),
         part("y", "f32", "rows", "y_width")),
        each=("rows",),
    ),
)
