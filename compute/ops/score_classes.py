"""Scores of a model over classes on a batch before its update."""

from __future__ import annotations

from streamtrain.compute.spec import Op, changed, given, size, step_changed

HELP = "log loss and hits of a model over classes"

OPS = (
    Op(
        "score_classes",
        (size("rows"), size("classes"), given("rank", "i32", "rows"), given("loss", "f32", "rows"),
         given("label", "i32", "rows"), given("weight", "f32", "rows"), given("base_classes", "f64", "classes"),
         step_changed(), changed("share_loss", "f64", 4), changed("share_classes", "f64", "classes"),
         changed("hits", "f64", 2), changed("count", "i64", 1)),
    ),
)
