"""The oracle of compute/ops/score_objective.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops import Oracle
from tests.oracles.ops._batch import step, weights


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


ORACLES = {
    "score_objective": Oracle(reference, example, 1e-12),
}
