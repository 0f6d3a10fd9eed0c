"""The inputs and outputs of the loss of one of several heads: the weight of its rows, its part of gradient and loss."""

from __future__ import annotations

from streamtrain.compute.spec import Op, changed, given, out, size, step_begun, step_changed, step_read, value

HELP = "of several heads: the weight of the rows that have one's label, its part of the gradient and of the loss"
ROWS = ("f32", "rows")

OPS = (
    Op("head_weight_f32", (size("rows"), given("label", *ROWS), given("weight", *ROWS), out("own", *ROWS)),
       each=("rows",), tiles="rows"),
    Op("head_weight_i32", (size("rows"), given("label", "i32", "rows"), given("weight", *ROWS), out("own", *ROWS)),
       each=("rows",), tiles="rows"),
    Op("head_begin", (step_begun("head"),)),
    Op("head_gradient", (size("n"), value("weight"), step_read("head"), step_read(), changed("dz", "f32", "n")),
       each=("n",), tiles="rows"),
    Op("head_end", (value("weight"), step_read("head"), step_changed())),
    Op("score_heads", (step_changed(), changed("loss", "f64", 2), changed("count", "i64", 1))),
)
