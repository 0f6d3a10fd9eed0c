"""Binary cross entropy with class weights and label smoothing, from the plain one."""

from __future__ import annotations

from streamtrain.compute.spec import Op, given, out, size, step_read, value

HELP = "loss and gradient of a binary label with class weights and label smoothing"

ROWS = ("f32", "rows")
OPS = (
    Op(
        "binary_objective",
        (size("rows"), value("smoothing"), given("z", *ROWS), given("p", *ROWS), given("plain", *ROWS),
         given("label", *ROWS), given("weight", *ROWS), given("class_weight", "f32", 2), step_read(),
         out("dz", *ROWS), out("loss", *ROWS)),
        each=("rows",), tiles="rows",
    ),
)
