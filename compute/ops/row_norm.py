"""Rows of mean 0 and variance 1, or of mean square 1, times a learned scale."""

from __future__ import annotations

from streamtrain.compute.spec import Arg, Op, given, out, size, value

HELP = "rows of mean 0 and variance 1, or of mean square 1, by a scale for each column"
_MATRIX, _ROW, _COLUMN = ("f32", "rows", "columns"), ("f32", "rows"), ("f32", "columns")

_SAVED = (given("mean", *_ROW), given("factor", *_ROW))
OPS = (
    Op("row_norm_forward",
       (size("rows"), size("columns"), value("centers", "i32"), value("epsilon"), given("x", *_MATRIX),
        given("scale", *_COLUMN), given("shift", *_COLUMN, optional=True), out("y", *_MATRIX), out("mean", *_ROW),
        out("factor", *_ROW)),
       rows=("rows",), tiles="rows"),
    Op("row_norm_gradient",
       (size("rows"), size("columns"), value("centers", "i32"), given("dy", *_MATRIX), given("x", *_MATRIX),
        given("scale", *_COLUMN), *_SAVED, out("dx", *_MATRIX)),
       rows=("rows",), tiles="rows"),
    Op("row_norm_grad_scale",
       (size("rows"), size("columns"), given("dy", *_MATRIX), given("x", *_MATRIX), *_SAVED, out("dscale", *_COLUMN),
        Arg("dshift", "out", "f32", ("columns",), optional=True)),
       each=("columns",), tiles="sum"),
)
