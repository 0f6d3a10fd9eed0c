"""The constant prediction over classes, row by row, of a weighted, smoothed cross entropy as logits."""

from __future__ import annotations

from streamtrain.compute.spec import Op, given, out, scratch, size, value

HELP = "logits of the classes' shares in the rows before each row, times their class weights, smoothed"

ROWS = ("f32", "rows")
OPS = (
    Op(
        "running_odds",
        (size("rows"), value("smoothing"), given("label", *ROWS), given("weight", *ROWS), given("base", "f64", 2),
         given("share", "f64", 2), given("class_weight", "f32", 2), scratch("seen", "f64", 2), out("z", *ROWS)),
    ),
    Op(
        "running_shares",
        (size("rows"), size("classes"), value("smoothing"), given("label", "i32", "rows"), given("weight", *ROWS),
         given("base", "f64", "classes"), given("share", "f64", "classes"), given("class_weight", "f32", "classes"),
         scratch("seen", "f64", "classes"), out("z", "f32", "rows", "classes")),
    ),
)
