"""A column of numbers as counts in cells, and what quantiles of them make of a row: native/base/sketch.h."""

from __future__ import annotations

from streamtrain.compute.spec import Op, changed, given, out, part, size
from streamtrain.compute.spec import value as plain

HELP = "counts of a column's values in cells a 32nd apart, bins and robust scale by their quantiles"
CELLS = 2 * (64 << 5) + 1
EDGES = CELLS + 1   # where they begin; before them the count of all
QUARTILES = 3

BATCH = (size("rows"), size("columns"), size("column"), size("width"))
NUMBERS, SKETCH = given("numbers", "f64", "rows", "columns"), ("f64", "width")
OPS = (
    Op("sketch_add", (*BATCH, NUMBERS, given("weight", "f32", "rows"), changed("sketch", *SKETCH)),
       each=("rows",)),
    Op("sketch_bin", (*BATCH, NUMBERS, given("sketch", *SKETCH), out("index", "i32", "rows")),
       each=("rows",)),
    Op(
        "sketch_scale",
        (*BATCH, size("y_width"), size("at"), NUMBERS, given("sketch", *SKETCH), plain("clip", "f64"),
         part("y", "f32", "rows", "y_width")),
        each=("rows",),
    ),
)
