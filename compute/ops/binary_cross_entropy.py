"""Binary cross entropy of a logit, with its gradient and the predicted probability."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.ops._batch import share, step, weights
from streamtrain.compute.spec import Array, Op, given, out, size, step_read

HELP = "loss, gradient and probability of a binary label"


def reference(
    rows: int, z: Array, label: Array, weight: Array, step: Any, dz: Array, loss: Array, p: Array
) -> None:
    logit = z.astype(np.float64)
    probability = np.exp(-np.logaddexp(0, -logit))
    counts = weight > 0
    p[:] = probability
    loss[:] = np.where(counts, np.logaddexp(0, logit) - logit * label, 0)
    dz[:] = np.where(counts, weight * share(step) * (probability - label), 0)


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    weight, z = weights(rng, n), rng.normal(0, 5, n)
    z[weight == 0] = np.nan   # what a row of weight 0 holds does not matter
    return {"rows": n, "z": z, "label": rng.integers(0, 2, n), "weight": weight, "step": step(weight)}


ROWS = ("f32", "rows")
OPS = (
    Op(
        "binary_cross_entropy",
        (size("rows"), given("z", *ROWS), given("label", *ROWS), given("weight", *ROWS), step_read(), out("dz", *ROWS),
         out("loss", *ROWS), out("p", *ROWS)),
        reference, example, each=("rows",), tiles="rows",
    ),
)
