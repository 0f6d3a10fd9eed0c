"""The batch's weight sum and how many rows have a weight, into the step block."""

from __future__ import annotations

from streamtrain.compute.spec import Op, given, size, step_begun

HELP = "sum of the batch's weights, what losses divide by; how many rows have one"

OPS = (Op("weight_sum", (size("rows"), given("weight", "f32", "rows"), step_begun())),)
