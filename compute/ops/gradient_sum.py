"""Gradients of several batches added up: of dense parameters, and of the rows of tables."""

from __future__ import annotations

from streamtrain.compute.ops._touched import SIZES, TOUCHED
from streamtrain.compute.spec import Op, changed, each, given, size, step_read

HELP = "gradients of several batches, times the weights of their rows, added in double"

OPS = (
    Op("gradient_sum", (size("n"), step_read(), given("g", "f32", "n"), changed("total", "f64", "n")),
       each=("n",)),
    Op("gradient_sum_rows",
       (*SIZES, step_read(), *TOUCHED, each(changed("totals", "f64"), "tables")),
       rows=("tables", "entries")),
)  # fmt: skip
