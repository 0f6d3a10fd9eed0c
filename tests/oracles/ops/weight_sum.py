"""The oracle of compute/ops/weight_sum.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops import Oracle
from tests.oracles.ops._batch import step, weights


def reference(rows: int, weight: Array, step: Any) -> None:
    step.weight_sum = float(weight[weight > 0].sum(dtype=np.float64))
    step.active_rows = int((weight > 0).sum())


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {"rows": n, "weight": weights(rng, n), "step": step()}


ORACLES = {
    "weight_sum": Oracle(reference, example),
}
