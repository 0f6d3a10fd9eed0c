"""Columns of mean 0 and variance 1 over the rows of a batch, times a learned scale; running statistics behind it."""

from __future__ import annotations

from streamtrain.compute.spec import Op, changed, given, out, size, step_changed, value

HELP = "columns of mean 0 and variance 1 over the rows of a batch, by a scale for each"
_MATRIX, _ROW, _COLUMN, _ONE = ("f32", "rows", "columns"), ("f32", "rows"), ("f32", "columns"), ("f32", 1)

_SIZES, _BATCH = (size("rows"), size("columns")), (given("x", *_MATRIX), given("weight", *_ROW))
_SAVED = (given("mean", *_COLUMN), given("factor", *_COLUMN))
OPS = (
    Op("batch_norm_sum", (*_SIZES, *_BATCH, out("sum", *_COLUMN), out("count", *_ONE)),
       each=("columns",), tiles="sum"),
    Op("batch_norm_squares",
       (*_SIZES, *_BATCH, given("sum", *_COLUMN), given("count", *_ONE), out("squares", *_COLUMN)),
       each=("columns",), tiles="sum"),
    Op("batch_norm_settle",
       (size("columns"), size("least"), value("momentum"), value("epsilon"), given("count", *_ONE),
        given("sum", *_COLUMN), given("squares", *_COLUMN), step_changed(), changed("running_mean", *_COLUMN),
        changed("running_variance", *_COLUMN), out("mean", *_COLUMN), out("factor", *_COLUMN)),
       each=("columns",)),
    Op("batch_norm_factor",
       (size("columns"), value("epsilon"), given("running_variance", *_COLUMN), out("factor", *_COLUMN)),
       each=("columns",)),
    Op("batch_norm_forward",
       (*_SIZES, given("x", *_MATRIX), *_SAVED, given("scale", *_COLUMN), given("shift", *_COLUMN),
        out("y", *_MATRIX)),
       rows=("rows",), tiles="rows"),
    Op("batch_norm_grad_scale",
       (*_SIZES, given("dy", *_MATRIX), *_BATCH, *_SAVED, out("dscale", *_COLUMN), out("dshift", *_COLUMN)),
       each=("columns",), tiles="sum"),
    Op("batch_norm_gradient",
       (*_SIZES, size("least"), given("dy", *_MATRIX), *_BATCH, given("count", *_ONE),
        given("scale", *_COLUMN), *_SAVED, given("dscale", *_COLUMN), given("dshift", *_COLUMN), out("dx", *_MATRIX)),
       rows=("rows",), tiles="rows"),
)
