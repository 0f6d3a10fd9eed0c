"""Bags of table rows: of each column the largest of as many as a row has entries, and the gradient of those."""

from __future__ import annotations

from streamtrain.compute.ops import bag
from streamtrain.compute.spec import Op, given, out, part, size

HELP = "the largest of table rows, column by column, by lists of indexes, scaled or not, and its gradient in row order"
_WINNER = ("winner", "i32", "rows", "dim")

OPS = (
    Op(
        "bag_max_forward",
        (*bag.BATCH, size("buckets"), size("dim"), size("width"), size("at"), bag.ENDS, bag.INDEX, bag.SCALE,
         given("table", "f32", "buckets", "dim"), part("x", "f32", "rows", "width"), out(*_WINNER)),
        rows=("rows",),
    ),
    Op(
        "bag_max_gradient",
        (*bag.BATCH, size("dim"), size("width"), size("at"), bag.ENDS, bag.SCALE, given("dx", "f32", "rows", "width"),
         given(*_WINNER), given("lead", "i32", "entries"), part("gradient", "f64", "entries", "dim")),
        rows=("rows",),
    ),
)
