"""Rows of length 1."""

from __future__ import annotations

from streamtrain.compute.spec import Op, given, out, size

HELP = "x / |x|, row by row"
_MATRIX = ("f32", "rows", "columns")

OPS = (
    Op("unit_rows_forward",
       (size("rows"), size("columns"), given("x", *_MATRIX), out("y", *_MATRIX), out("length", "f32", "rows")),
       rows=("rows",), tiles="rows"),
    Op("unit_rows_gradient",
       (size("rows"), size("columns"), given("dy", *_MATRIX), given("y", *_MATRIX), given("length", "f32", "rows"),
        out("dx", *_MATRIX)),
       rows=("rows",), tiles="rows"),
)
