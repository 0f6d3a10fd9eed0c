"""Matrices side by side in one, and the columns of one in matrices of their own."""

from __future__ import annotations

from streamtrain.compute.spec import Op, each, given, out, part, size

HELP = "matrices side by side"
PART = 2   # of each its first column in the wide one, and how many it has

OPS = (
    Op("concat_forward",
       (size("rows"), size("inputs"), size("width"), given("parts", "i64", "inputs", PART),
        each(given("x", "f32", "rows"), "inputs"), part("y", "f32", "rows", "width")),
       rows=("rows",), tiles="rows"),
    Op("concat_gradient",
       (size("rows"), size("outputs"), size("width"), given("parts", "i64", "outputs", PART),
        given("dy", "f32", "rows", "width"), each(out("dx", "f32", "rows"), "outputs")),
       rows=("rows",), tiles="rows"),
)  # fmt: skip
