"""Clipping by norm (Pascanu, Mikolov, Bengio: 2013): squares of gradients, and by how much each is scaled."""

from __future__ import annotations

from streamtrain.compute.ops._touched import ENDS, GRADIENT, LEAD
from streamtrain.compute.ops.embedding import PLACES
from streamtrain.compute.spec import Op, changed, given, out, size, step_changed, value

HELP = "gradients scaled to a norm, by group and all together"

OPS = (
    Op(
        "gradient_squares",
        (size("n"), size("stretches"), size("columns"), given("settings", "f64", "stretches", "columns"),
         given("g", "f32", "n"), out("squares", "f64", "stretches")),
        rows=("stretches",),
    ),
    Op(
        "gradient_squares_rows",
        (size("rows"), size("entries"), size("tables"), size("total"), PLACES, ENDS, LEAD, GRADIENT,
         out("squares", "f64", "tables")),
        rows=("tables",),
    ),
    Op(
        "clip_norm",
        (size("stretches"), given("group", "i32", "stretches"), given("limits", "f64", "stretches"),
         value("limit", "f64"), given("squares", "f64", "stretches"), step_changed(),
         out("scale", "f32", "stretches")),
    ),
    Op("score_gradient", (step_changed(), changed("gradient", "f64", 2))),
)
