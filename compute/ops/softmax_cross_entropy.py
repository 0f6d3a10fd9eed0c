"""Cross entropy over classes, with its gradient and the class probabilities."""

from __future__ import annotations

from streamtrain.compute.spec import Op, given, out, size, step_read

HELP = "loss, gradient and probabilities of a class label"

MATRIX, ROWS = ("f32", "rows", "classes"), ("f32", "rows")
OPS = (
    Op(
        "softmax_cross_entropy",
        (size("rows"), size("classes"), given("z", *MATRIX), given("label", "i32", "rows"), given("weight", *ROWS),
         step_read(), out("dz", *MATRIX), out("loss", *ROWS), out("p", *MATRIX), out("rank", "i32", "rows")),
        rows=("rows",), tiles="rows",
    ),
)
