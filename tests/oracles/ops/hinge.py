"""The oracle of compute/ops/hinge.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops import Oracle
from tests.oracles.ops._batch import share, step, weights


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


ORACLES = {
    "hinge": Oracle(reference, example),
    "running_margin": Oracle(before, example),
}
