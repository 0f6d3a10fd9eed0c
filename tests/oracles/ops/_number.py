"""The common oracle of losses of a number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops import Oracle
from tests.oracles.ops._batch import share, step, weights


def number(at: Callable[..., tuple[Array, Array]], /, **settings: float) -> Oracle:
    """`at` gives loss and slope, each [rows], of the errors [rows] and the settings; these with values to try."""

    def reference(rows: int, *given: Any) -> None:
        values, (z, label, weight, mean, scale, step_block, dz, loss, p) = given[:-9], given[-9:]
        counts = weight > 0
        each, slope = at((z - (label - mean[0]) * scale[0]).astype(np.float64), *values)
        p[:] = z / scale[0] + mean[0]
        loss[:] = np.where(counts, each, 0)
        dz[:] = np.where(counts, weight * share(step_block) * slope, 0)

    def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
        weight, z = weights(rng, n), rng.normal(0, 3, n)
        z[weight == 0] = np.nan   # what a row of weight 0 holds does not matter
        return {
            "rows": n, **settings, "z": z, "label": rng.normal(40, 10, n), "weight": weight, "mean": [41.0],
            "scale": [0.1], "step": step(weight),
        }

    return Oracle(reference, example)
