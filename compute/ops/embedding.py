"""Tables of vectors by category, any number at once: gather, the leading row of each bucket in a batch, gradient of the
touched rows.
"""

from __future__ import annotations

from streamtrain.compute.ops.entry_table import PLACE
from streamtrain.compute.spec import Op, each, given, out, part, scratch, size

HELP = "rows of tables by category, and their gradient in row order"
BATCH = (size("rows"), size("columns"), size("tables"))
PLACES = given("places", "i64", "tables", PLACE)
CATEGORIES = given("categories", "i32", "rows", "columns")

OPS = (
    Op(
        "embedding_forward",
        (*BATCH, size("width"), PLACES, CATEGORIES, each(given("table", "f32"), "tables"),
         part("x", "f32", "rows", "width")),
        rows=("tables", "rows"), tiles="rows",
    ),
    Op(
        "embedding_lead",
        (*BATCH, size("slots"), PLACES, CATEGORIES, given("weight", "f32", "rows"), scratch("seen", "i64", "slots"),
         out("lead", "i32", "tables", "rows")),
        each=("tables", "rows"),
    ),
    Op(
        "embedding_gradient",
        (size("rows"), size("tables"), size("total"), size("width"), size("first"), PLACES,
         given("dx", "f32", "rows", "width"), given("lead", "i32", "tables", "rows"),
         part("gradient", "f64", "rows", "total")),
        rows=("tables", "rows"),
    ),
)  # fmt: skip
