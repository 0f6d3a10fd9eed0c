"""The weight of rows whose label is among the likeliest classes."""

from __future__ import annotations

from streamtrain.compute.spec import Op, changed, given, size

HELP = "weight of the rows whose label is among the likeliest classes"
TOPS = (5, 10, 100)   # how many of them: a prefix of these where there are few classes

OPS = (
    Op("score_top",
       (size("rows"), size("count"), given("rank", "i32", "rows"), given("weight", "f32", "rows"),
        given("most", "i32", "count"), changed("top", "f64", "count")),
       rows=("count",)),
)
