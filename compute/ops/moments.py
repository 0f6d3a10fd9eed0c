"""The part of a batch in a worker's share of the columns' mean and variance."""

from __future__ import annotations

from streamtrain.compute.moments import MOMENTS
from streamtrain.compute.spec import TEMPLATE_TYPES, Op, changed, given, size

HELP = "count, mean and squared deviations of columns, as they came and held within limits, merged into a share"

OPS = (
    Op(
        "moments",
        (size("rows"), size("columns"), given("numbers", "T", "rows", "columns"), given("weight", "f32", "rows"),
         given("mean", "T", "columns"), given("scale", "f32", "columns"), given("clip", "f32", "columns"),
         given("low", "T", "columns"), given("high", "T", "columns"), changed("share", "f64", "columns", len(MOMENTS))),
        each=("columns",), types=tuple(TEMPLATE_TYPES),
    ),
)
