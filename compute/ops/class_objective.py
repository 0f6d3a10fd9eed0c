"""Cross entropy over classes with class weights and label smoothing, from the plain one."""

from __future__ import annotations

from streamtrain.compute.spec import Op, given, out, size, step_read, value

HELP = "loss and gradient of a class label with class weights and label smoothing"

MATRIX, ROWS = ("f32", "rows", "classes"), ("f32", "rows")
OPS = (
    Op(
        "class_objective",
        (size("rows"), size("classes"), value("smoothing"), given("z", *MATRIX), given("p", *MATRIX),
         given("plain", *ROWS), given("label", "i32", "rows"), given("weight", *ROWS),
         given("class_weight", "f32", "classes"), step_read(), out("dz", *MATRIX), out("loss", *ROWS)),
        rows=("rows",), tiles="rows",
    ),
)
