"""Scores of a model of a number on a batch before its update, the constant prediction's loss given."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.ops._batch import step, weights
from streamtrain.compute.spec import Array, Op, changed, given, size, step_changed, value

HELP = "loss, absolute and squared errors of a model of a number and of the constant prediction"


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


ROWS = ("f32", "rows")
OPS = (
    Op(
        "score_number",
        (size("rows"), value("degree"), given("scale", "f32", 1), given("p", *ROWS), given("loss", *ROWS),
         given("constant", *ROWS), given("constant_loss", *ROWS), given("label", *ROWS), given("weight", *ROWS),
         step_changed(), changed("share_loss", "f64", 4), changed("errors", "f64", 5), changed("count", "i64", 1)),
        reference, example, tolerance=1e-12,
    ),
)
