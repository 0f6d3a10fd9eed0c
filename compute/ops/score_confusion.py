"""Which class was taken for which."""

from __future__ import annotations

from streamtrain.compute.spec import Op, changed, given, out, size

HELP = "weight of the rows of each class by the class that is the likeliest"
MOST_CLASSES = 64   # whose confusion is reported: 32 kB of a state

_WEIGHT = given("weight", "f32", "rows")
OPS = (
    Op("class_pair",
       (size("rows"), size("classes"), given("p", "f32", "rows", "classes"), given("rank", "i32", "rows"),
        given("label", "i32", "rows"), _WEIGHT, out("pair", "i32", "rows")),
       each=("rows",), tiles="rows"),
    Op("score_confusion",
       (size("rows"), size("cells"), given("pair", "i32", "rows"), _WEIGHT, changed("confusion", "f64", "cells")),
       each=("cells",)),
)
