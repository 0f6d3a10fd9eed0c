"""Bytes into columns of the input matrix, centred: a first layer learns badly from what lies on one side of 0."""

from __future__ import annotations

from streamtrain.compute.spec import Op, given, part, size

HELP = "byte / 255 - 0.5, into the input matrix"

OPS = (
    Op(
        "pixels",
        (size("rows"), size("columns"), size("width"), size("at"), given("pixels", "u8", "rows", "columns"),
         part("x", "f32", "rows", "width")),
        rows=("rows",), tiles="rows",
    ),
)
