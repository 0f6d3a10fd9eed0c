"""Bags of table rows: the sum or mean of as many as a row has entries, and the gradient of the touched rows."""

from __future__ import annotations

from streamtrain.compute.spec import Op, changed, given, part, scratch, size, value

HELP = "sums or means of table rows by lists of indexes, scaled or not, and their gradient in row order"
BATCH = (size("rows"), size("entries"))
ENDS = given("ends", "i32", "rows")
INDEX = given("index", "i32", "entries")
SCALE = given("scale", "f32", "entries", optional=True)

OPS = (
    Op(
        "bag_forward",
        (*BATCH, size("buckets"), size("dim"), size("width"), size("at"), ENDS, INDEX, SCALE,
         given("table", "f32", "buckets", "dim"), value("mean", "i32"), value("adds", "i32"),
         changed("x", "f32", "rows", "width")),
        rows=("rows",),
    ),
    Op(
        "bag_lead",
        (*BATCH, size("buckets"), size("slots"), ENDS, INDEX, given("weight", "f32", "rows"),
         scratch("seen", "i64", "slots"), changed("lead", "i32", "entries")),
        rows=("rows",),
    ),
    Op(
        "bag_gradient",
        (*BATCH, size("dim"), size("width"), size("at"), ENDS, SCALE, given("dx", "f32", "rows", "width"),
         given("lead", "i32", "entries"), value("mean", "i32"), part("gradient", "f64", "entries", "dim")),
        rows=("rows",),
    ),
)
