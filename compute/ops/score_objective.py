"""The minimised loss on a batch before its update, where that is not the log loss."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.ops._batch import step, weights
from streamtrain.compute.spec import Array, Op, changed, given, size, step_changed

HELP = "weighted loss of a model and of the constant prediction, where it is not the log loss"


def reference(
    rows: int, loss: Array, constant_loss: Array, weight: Array, step: Any, objective: Array
) -> None:
    counts = weight > 0
    w = weight[counts].astype(np.float64)
    total, of_constant = (float((w * each[counts]).sum()) for each in (loss, constant_loss))
    objective += [total, of_constant]
    step.loss_sum = step.objective_sum = total
    step.not_finite |= int(not np.isfinite(total))


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    weight = weights(rng, n)
    return {
        "rows": n, "loss": rng.random(n), "constant_loss": rng.random(n), "weight": weight, "step": step(weight),
        "objective": [1.0, 2.0],
    }


ROWS = ("f32", "rows")
OPS = (
    Op(
        "score_objective",
        (size("rows"), given("loss", *ROWS), given("constant_loss", *ROWS), given("weight", *ROWS), step_changed(),
         changed("objective", "f64", 2)),
        reference, example, tolerance=1e-12,
    ),
)
