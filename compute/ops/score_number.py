"""Scores of a model of a number on a batch before its update, the constant prediction's loss given."""

from __future__ import annotations

from streamtrain.compute.spec import Op, changed, given, size, step_changed, value

HELP = "loss, absolute and squared errors of a model of a number and of the constant prediction"

ROWS = ("f32", "rows")
OPS = (
    Op(
        "score_number",
        (size("rows"), value("degree"), given("scale", "f32", 1), given("p", *ROWS), given("loss", *ROWS),
         given("constant", *ROWS), given("constant_loss", *ROWS), given("label", *ROWS), given("weight", *ROWS),
         step_changed(), changed("share_loss", "f64", 4), changed("errors", "f64", 5), changed("count", "i64", 1)),
    ),
)
