"""Counts of a category's buckets: what a batch adds, and what a row sees of those before."""

from __future__ import annotations

from streamtrain.compute.spec import Op, changed, given, out, part, size

HELP = "rows by bucket of a category, as a number of the input matrix or to tell rare ones"
FORMS = ("log", "share", "number")   # what is made of a count
BATCH = (size("rows"), size("columns"), size("column"), size("cells"))
CATEGORIES = given("categories", "i32", "rows", "columns")
COUNT = ("i64", "cells")

OPS = (
    Op("count_add", (*BATCH, CATEGORIES, given("weight", "f32", "rows"), changed("count", *COUNT)),
       each=("rows",)),
    Op(
        "count_value",
        (*BATCH, size("width"), size("at"), size("form"), CATEGORIES, given("count", *COUNT),
         part("x", "f32", "rows", "width")),
        each=("rows",),
    ),
    Op(
        "count_index",
        (*BATCH, size("least"), CATEGORIES, given("count", *COUNT), out("index", "i32", "rows")),
        each=("rows",),
    ),
)
