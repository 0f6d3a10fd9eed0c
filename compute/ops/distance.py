"""The distance between two rows."""

from __future__ import annotations

from streamtrain.compute.spec import Op, given, out, size

HELP = "the length of a - b, row by row"
_MATRIX = ("f32", "rows", "columns")

OPS = (
    Op("distance_forward",
       (size("rows"), size("columns"), given("a", *_MATRIX), given("b", *_MATRIX), out("y", "f32", "rows")),
       rows=("rows",), tiles="rows"),
    Op("distance_gradient",
       (size("rows"), size("columns"), given("dy", "f32", "rows"), given("y", "f32", "rows"), given("a", *_MATRIX),
        given("b", *_MATRIX), out("da", *_MATRIX), out("db", *_MATRIX)),
       rows=("rows",), tiles="rows"),
)
