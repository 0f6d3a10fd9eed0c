"""The constant prediction of a weighted, smoothed cross entropy as logits."""

from __future__ import annotations

from streamtrain.compute.spec import Op, given, out, size, value

HELP = "logits of the classes' shares so far times their class weights, smoothed"

OPS = (
    Op(
        "smoothed_prior",
        (size("outputs"), size("classes"), value("smoothing"), given("seen", "f64", "classes"),
         given("class_weight", "f32", "classes"), out("offset", "f32", "outputs")),
        each=("outputs",),
    ),
)
