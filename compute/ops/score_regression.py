"""Scores of a model of a number on a batch before its update."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.ops._batch import step, weights
from streamtrain.compute.spec import Array, Op, changed, given, size, step_changed

HELP = "loss, absolute and squared errors of a model of a number"


def reference(
    rows: int, p: Array, loss: Array, label: Array, weight: Array, scale: Array, base_loss: Array, step: Any,
    share_loss: Array, errors: Array, count: Array,
) -> None:
    counts = weight > 0
    w, y, q = (a[counts].astype(np.float64) for a in (weight, label, p))
    seen, labels = (
        start + np.concatenate(([0.0], np.cumsum(added)[:-1])) if len(w) else w
        for start, added in ((base_loss[1] + share_loss[1], w), (base_loss[3] + share_loss[3], w * y))
    )
    off = np.where(seen > 0, labels / np.where(seen > 0, seen, 1) - y, 0)   # the first of all has no prediction
    total, constant = float((w * loss[counts]).sum()), float((w * off**2).sum())
    share_loss += [total, w.sum(), constant * float(scale[0]) ** 2, (w * y).sum()]
    errors += [(w * abs(q - y)).sum(), (w * (q - y) ** 2).sum(), (w * y * y).sum(), (w * abs(off)).sum(), constant]
    count += step.active_rows
    step.loss_sum = total
    step.not_finite |= int(not np.isfinite(total))


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    weight = weights(rng, n)
    return {
        "rows": n, "p": rng.normal(size=n), "loss": rng.random(n), "label": rng.normal(size=n), "weight": weight,
        "scale": [0.5], "base_loss": [50.0, 100.0, 60.0, 30.0], "step": step(weight),
        "share_loss": [1.0, 2.0, 3.0, 4.0], "errors": [1.0, 2.0, 3.0, 4.0, 5.0], "count": [7],
    }


ROWS = ("f32", "rows")
OPS = (
    Op(
        "score_regression",
        (size("rows"), given("p", *ROWS), given("loss", *ROWS), given("label", *ROWS), given("weight", *ROWS),
         given("scale", "f32", 1), given("base_loss", "f64", 4), step_changed(), changed("share_loss", "f64", 4),
         changed("errors", "f64", 5), changed("count", "i64", 1)),
        reference, example, tolerance=1e-12,
    ),
)
