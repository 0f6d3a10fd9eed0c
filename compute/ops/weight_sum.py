"""The batch's weight sum and how many rows have a weight, into the step block."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.ops._batch import step, weights
from streamtrain.compute.spec import Array, Op, given, size, step_begun

HELP = "sum of the batch's weights, what losses divide by; how many rows have one"


def reference(rows: int, weight: Array, step: Any) -> None:
    step.weight_sum = float(weight[weight > 0].sum(dtype=np.float64))
    step.active_rows = int((weight > 0).sum())


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {"rows": n, "weight": weights(rng, n), "step": step()}


OPS = (Op("weight_sum", (size("rows"), given("weight", "f32", "rows"), step_begun()), reference, example),)
