"""Class probabilities from logits."""

from __future__ import annotations

from streamtrain.compute.spec import Op, given, out, size

HELP = "class probabilities, e^z over its sum"

OPS = (
    Op(
        "softmax",
        (size("rows"), size("classes"), given("z", "f32", "rows", "classes"), out("p", "f32", "rows", "classes")),
        rows=("rows",), tiles="rows",
    ),
)
