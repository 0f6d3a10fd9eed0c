"""Numbers into columns of the input matrix, centred, scaled and cut."""

from __future__ import annotations

from streamtrain.compute.spec import TEMPLATE_TYPES, Op, given, part, size

HELP = "(number - mean) * scale, cut at -clip and clip, into the input matrix; 0 where the number is missing (NaN)"

OPS = (
    Op(
        "standardize",
        (size("rows"), size("columns"), size("width"), size("at"), given("numbers", "T", "rows", "columns"),
         given("mean", "T", "columns"), given("scale", "f32", "columns"), given("clip", "f32", "columns"),
         part("x", "f32", "rows", "width")),
        rows=("rows",), tiles="rows", types=tuple(TEMPLATE_TYPES),
    ),
)
