"""Sums of the label by bucket of a category: what a batch adds, and what a row sees of those before."""

from __future__ import annotations

from streamtrain.compute.ops.embedding import CATEGORIES
from streamtrain.compute.spec import Op, changed, given, part, size
from streamtrain.compute.spec import value as plain

HELP = "weight and weighted label by bucket of a category, as how far a bucket's mean lies from that of all"

BATCH = tuple(size(name) for name in ("rows", "columns", "column", "buckets"))
ROWS = ("f32", "rows")
SUMS = ("f64", "buckets", 2)
OPS = (
    Op(
        "target_add",
        (*BATCH, CATEGORIES, given("label", *ROWS), given("weight", *ROWS), changed("sums", *SUMS)),
        each=("rows",),
    ),
    Op("target_add_all", (size("rows"), given("label", *ROWS), given("weight", *ROWS), changed("sums", "f64", 3))),
    Op(
        "target_value",
        (*BATCH, size("width"), size("at"), CATEGORIES, given("sums", *SUMS), given("everything", "f64", 3),
         plain("prior", "f64"), part("x", "f32", "rows", "width")),
        each=("rows",),
    ),
)
