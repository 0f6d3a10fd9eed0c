"""The oracle of compute/ops/score_number.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops import Oracle
from tests.oracles.ops._batch import step, weights


def reference(
    rows: int, degree: float, scale: Array, p: Array, loss: Array, constant: Array, constant_loss: Array, label: Array,
    weight: Array, step: Any, share_loss: Array, errors: Array, count: Array,
) -> None:
    counts = weight > 0
    w, y, q, c = (a[counts].astype(np.float64) for a in (weight, label, p, constant))
    total, of_constant = (float((w * each[counts]).sum()) for each in (loss, constant_loss))
    unit = float(scale[0]) ** -degree
    share_loss += [unit * total, w.sum(), unit * of_constant, (w * y).sum()]
    linear, square = ([(w * abs(each - y) ** power).sum() for each in (q, c)] for power in (1, 2))
    errors += [linear[0], square[0], (w * y * y).sum(), linear[1], square[1]]
    count += step.active_rows
    step.loss_sum, step.objective_sum = unit * total, total
    step.not_finite |= int(not np.isfinite(total))


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    weight = weights(rng, n)
    return {
        "rows": n, "degree": 2.0, "scale": [0.5], "p": rng.normal(size=n), "loss": rng.random(n),
        "constant": rng.normal(size=n), "constant_loss": rng.random(n), "label": rng.normal(size=n),
        "weight": weight, "step": step(weight), "share_loss": [1.0, 2.0, 3.0, 4.0],
        "errors": [1.0, 2.0, 3.0, 4.0, 5.0], "count": [7],
    }


ORACLES = {
    "score_number": Oracle(reference, example, 1e-12),
}
