"""Hinge loss of a binary label by its margin, and the best constant margin, row by row."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.ops._batch import share, step, weights
from streamtrain.compute.spec import Array, Op, given, out, size, step_read

HELP = "hinge loss and gradient of a binary label"


def reference(rows: int, z: Array, label: Array, weight: Array, step: Any, dz: Array, loss: Array) -> None:
    counts, side = weight > 0, np.where(label >= 0.5, 1.0, -1.0)
    short = 1 - side * z
    loss[:] = np.where(counts, np.maximum(short, 0), 0)
    dz[:] = np.where(counts & (short > 0), -weight * share(step) * side, 0)


def before(rows: int, label: Array, weight: Array, base: Array, share: Array, z: Array) -> None:
    w, is_one = np.where(weight > 0, weight, 0).astype(np.float64), label >= 0.5
    # as kernels add them: to what there was
    zero, one = (np.cumsum([base[at] + share[at], *added])[:-1] for at, added in enumerate((w * ~is_one, w * is_one)))
    z[:] = np.sign(one - zero)


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    weight = np.ceil(weights(rng, n))   # whole: classes may weigh the same
    return {
        "rows": n, "z": rng.normal(0, 2, n), "label": rng.integers(0, 2, n), "weight": weight, "step": step(weight),
        "base": [2.0, 3.0], "share": [2.0, n % 3],
    }


ROWS = ("f32", "rows")
OPS = (
    Op(
        "hinge",
        (size("rows"), given("z", *ROWS), given("label", *ROWS), given("weight", *ROWS), step_read(), out("dz", *ROWS),
         out("loss", *ROWS)),
        reference, example, each=("rows",), tiles="rows",
    ),
    Op(
        "running_margin",
        (size("rows"), given("label", *ROWS), given("weight", *ROWS), given("base", "f64", 2),
         given("share", "f64", 2), out("z", *ROWS)),
        before, example,
    ),
)
