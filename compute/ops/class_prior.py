"""The classes' shares so far as logits, and their addition to a model's outputs."""

from __future__ import annotations

from streamtrain.compute.spec import Op, changed, given, out, size

HELP = "logits of the classes' shares by the weights seen, with half a count each beforehand"

OPS = (
    Op(
        "class_prior",
        (size("outputs"), size("classes"), given("seen", "f64", "classes"), out("offset", "f32", "outputs")),
        each=("outputs",),
    ),
    Op(
        "add_offset",
        (size("rows"), size("outputs"), given("offset", "f32", "outputs"), changed("z", "f32", "rows", "outputs")),
        rows=("rows",), tiles="rows",
    ),
)
