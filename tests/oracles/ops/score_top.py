"""The oracle of compute/ops/score_top.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops import Oracle
from tests.oracles.ops._batch import weights


def reference(rows: int, count: int, rank: Array, weight: Array, most: Array, top: Array) -> None:
    w = np.maximum(weight, 0).astype(np.float64)
    top += ((rank[:, None] < most) * w[:, None]).sum(0)


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    count = 1 + n % 3
    return {"rows": n, "count": count, "rank": rng.integers(0, 9, n), "weight": weights(rng, n),
            "most": np.array([2, 5, 8])[:count], "top": np.arange(count)}


ORACLES = {
    "score_top": Oracle(reference, example, 1e-12),
}
