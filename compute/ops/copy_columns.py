"""Columns of one matrix into those of another, or added to them."""

from __future__ import annotations

from streamtrain.compute.spec import Op, changed, given, part, size

HELP = "columns of a matrix into those of another, or added to them"

_ARGS = (*(size(name) for name in ("rows", "count", "given_width", "from", "width", "at")),
         given("x", "f32", "rows", "given_width"))  # fmt: skip
OPS = (
    Op("copy_columns", (*_ARGS, part("y", "f32", "rows", "width")), rows=("rows",), tiles="rows"),
    Op("add_columns", (*_ARGS, changed("y", "f32", "rows", "width")), rows=("rows",), tiles="rows"),
)
